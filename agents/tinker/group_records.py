"""The records of a group's rollouts, made from the cookbook's trajectories and their episodes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, SampledTokens, record_episode
from tokengym.agents.tinker.codec import RendererCodec
from tokengym.agents.tinker.env import Member
from tokengym.envs.tokens.codec import ByteCodec, Codec

_LONGEST_CHARACTER = 4
"""Most bytes of one character in UTF-8, and so most tokens whose texts must be read together."""
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


def group_records(
    origin: RolloutOrigin,
    members: Sequence[Member],
    rollouts: Sequence[Trajectory],
    added: Sequence[float],
) -> list[RolloutRecord]:
    """Return the records of a group's rollouts, in their order.

    Members of one episode have the same number. In training each gets the advantage that the
    cookbook gives it: its return and what the group adds to it, less the group's mean of that.

    Args:
        origin: of the group; its options are those that the members' worlds were made with.
        members: as the group made them.
        rollouts: their trajectories.
        added: what the group adds to each return.
    """
    returns = [
        sum(step.reward for step in rollout.transitions) + more
        for rollout, more in zip(rollouts, added, strict=True)
    ]
    if not returns:
        return []
    mean = sum(returns) / len(returns)
    episodes: dict[int, int] = {}
    texts = TokenTexts(members[0].codec)
    records = []
    for member, rollout, value in zip(members, rollouts, returns, strict=True):
        number = episodes.setdefault(id(member.coordinator), len(episodes))
        world = member.coordinator.world
        records.append(
            record_episode(
                replace(origin, member=number, options=world.made_with or origin.options),
                member.task,
                member.role,
                member.coordinator.exchanges,
                sampled=[
                    SampledTokens(
                        step.ac.tokens,
                        step.ac.maybe_logprobs or (),
                        texts.pieces(step.ac.tokens),
                        step.ob.length,
                        step.ac.stop_reason,
                    )
                    for step in rollout.transitions
                ],
                advantage=value - mean if origin.kind == "train" else None,
            )
        )
    return records


class TokenTexts:
    """Texts of tokens; those of single tokens are cached.

    Args:
        codec: how tokens are read.
    """

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        self._part = cache(self._text)

    def pieces(self, tokens: Sequence[int]) -> list[str]:
        """Return the text of each token; joined they spell the tokens as a whole.

        The text of a character that spans several tokens is that of the last of them.
        """
        pieces: list[str] = []
        pending: tuple[int, ...] = ()
        for token in tokens:
            pending += (token,)
            text = self._part(pending)
            if text.endswith(_UNREADABLE) and len(pending) < _LONGEST_CHARACTER:
                pieces.append("")
            else:
                pieces.append(text)
                pending = ()
        if pending:
            pieces[-1] = self._part(pending)
        if "".join(pieces) == self._text(tokens):
            return pieces
        # A tokenizer that treats the beginning of a text in its own way.
        texts = [self._text(tokens[:end]) for end in range(len(tokens) + 1)]
        return [after[len(before) :] for before, after in pairwise(texts)]

    def _text(self, tokens: Sequence[int]) -> str:
        if isinstance(self._codec, RendererCodec):
            return self._codec.tokenizer.decode(tokens)
        if isinstance(self._codec, ByteCodec):
            return bytes(token for token in tokens if 0 <= token < 256).decode("utf-8", "replace")
        return self._codec.read(list(tokens), "length").text
