"""An Exchange: one reply of an episode with the Turns around it, before it becomes a record."""

from collections.abc import Sequence
from typing import NamedTuple

from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.tokens.codec import DecodedReply


class SampledTokens(NamedTuple):
    """A reply in tokens, as it was sampled.

    Attributes:
        ids: the token ids, the end marker included.
        logprobs: log-probability of each, in nats; empty where the sampler returned none.
        pieces: text of each; joined they spell the reply as sampled.
        read: tokens of the whole observation that it answers.
    """

    ids: Sequence[int]
    logprobs: Sequence[float]
    pieces: Sequence[str]
    read: int


class TurnExchange(NamedTuple):
    """One reply of any role.

    Attributes:
        asked: the Turn that was answered.
        reply: the reply; `None` where the episode was cut short instead.
        answer: the world's answer to the reply.
        paid: the Turn that pays for it: the answer, or where a budget ended the episode right after
            it, the last Turn, which also pays for the rest played as empty replies.
    """

    asked: Turn
    reply: DecodedReply | None
    answer: Turn
    paid: Turn


def is_malformed(reply: DecodedReply, answer: Turn) -> bool:
    """Return whether the world rejected a reply: by its own metric where it has one."""
    well_formed = answer.metrics.get("well_formed")
    if well_formed is not None:
        return well_formed < 1.0
    return not reply.complete or answer.stop_reason is StopReason.MALFORMED
