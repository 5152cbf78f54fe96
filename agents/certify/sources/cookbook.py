"""Data sets of tinker-cookbook by the import path of their builder, in text."""

import asyncio
import inspect
from typing import Any

from tinker_cookbook.completers import TokensWithLogprobs
from tinker_cookbook.rl.types import Trajectory, Transition

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, package
from tokengym.agents.tinker.tokenizer_loading import load_tokenizer
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs.registry import import_object

_TOKENIZERS = ("model_name_for_tokenizer", "tokenizer", "model_name")
"""Names that builders use for the tokenizer."""


class Cookbook(Source):
    """A data set; a Task is a group of its batches, played by one member.

    Replies are encoded by the tokenizer and end with the stop sequence that the environment asks
    for. The reward of the group counts too, as that of a group of one.

    Args:
        name: `module:Name` of an `RLDatasetBuilder`.
        tokenizer: name or directory; that of the toy model if empty.
        **options: of the builder; where it takes a tokenizer by name, that is `tokenizer`.
    """

    def __init__(self, name: str, tokenizer: str = "", **options: Any) -> None:
        tokenizer = tokenizer or str(MODEL_DIR)
        self._tokenizer = load_tokenizer(tokenizer)
        builder = import_object(name)
        taken = inspect.signature(builder).parameters
        named = {field: tokenizer for field in _TOKENIZERS if field in taken}
        if "renderer_name" in taken:
            named["renderer_name"] = "role_colon"
        train, test = asyncio.run(builder(**{**named, **options})())
        self._batches = {"train": train} | ({} if test is None else {"test": test})
        self._sizes = {split: len(data.get_batch(0)) for split, data in self._batches.items()}
        sizes = (len(data) * self._sizes[split] for split, data in self._batches.items())
        splits = () if test is None else tuple(self._batches)
        self.facts = Facts(package("tinker-cookbook"), splits, size=min(sizes), turns=MANY_TURNS)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Make the environments of a group and begin with the first."""
        split = place.split or "train"
        batch, member = divmod(place.index, self._sizes[split])
        group = self._batches[split].get_batch(batch)[member]
        envs = asyncio.run(group.make_envs())
        seen, stop = asyncio.run(envs[0].initial_observation())
        said: list[Transition] = []
        read = seen.to_ints()

        def reply(text: str) -> SourceStep:
            nonlocal seen, stop, read
            tokens = self._encode(text, stop)
            result = asyncio.run(envs[0].step(tokens))
            action = TokensWithLogprobs(tokens=tokens, maybe_logprobs=None)
            said.append(Transition(seen, action, result.reward, result.episode_done))
            seen, stop = result.next_observation, result.next_stop_condition
            if result.episode_done:
                trajectory = Trajectory(transitions=said, final_ob=seen)
                ((more, _),) = asyncio.run(group.compute_group_rewards([trajectory], envs[:1]))
                return SourceStep(result.reward + more, True)
            known, read = [*read, *tokens], seen.to_ints()
            new = read[len(known) :] if read[: len(known)] == known else read
            return SourceStep(result.reward, False, self._tokenizer.decode(new))

        reference = getattr(envs[0], "get_reference_answer", str)()
        return SourceEpisode(self._tokenizer.decode(read), reply, (reference,) if reference else ())

    def _encode(self, text: str, stop: Any) -> list[int]:
        end = stop[0] if stop else ""
        # Tokens of no tokenizer spell half of a surrogate pair.
        words = text.encode("utf-8", "replace").decode() + (end if isinstance(end, str) else "")
        tokens: list[int] = self._tokenizer.encode(words, add_special_tokens=False)
        return tokens if isinstance(end, str) else [*tokens, end]
