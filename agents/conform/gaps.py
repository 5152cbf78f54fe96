"""How far apart a server puts the log-probabilities of the same tokens in sampling and training.

Policy gradients weigh a token by the ratio of its two probabilities. Where a server samples with
other kernels, numbers or weights than it trains with, that ratio is not one even on fresh samples.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tinker
from numpy.typing import ArrayLike

from tokengym.agents.training.batches.datums import laid_out, numbers
from tokengym.rewards.arrays import Floats

LOW, HIGH = 0.9, 1.1
"""Bounds of an importance ratio that a clipped loss hardly notices."""
_LENGTHS = (4, 16, 48, 96)
_SAMPLES, _TOKENS = 4, 32
_FIRST, _LAST = 40, 250  # ids that every vocabulary has, and no special token
_FLOOR = -100.0  # below the logarithm of any float32


@dataclass(frozen=True)
class ScoredReply:
    """A sampled reply.

    Attributes:
        prompt: tokens it was sampled after.
        tokens: the reply's.
        sampled: natural log-probability that each was sampled with, [T].
        trained: the same of the training forward pass, [T].
    """

    prompt: list[int]
    tokens: list[int]
    sampled: Floats
    trained: Floats


@dataclass(frozen=True)
class Gap:
    """How far the log-probabilities of N tokens are apart: trained less sampled, in nats.

    Attributes:
        tokens: N.
        mean: minus the divergence from the sampler, estimated.
        rms: root of the mean square.
        largest: largest absolute one.
        outside: share of importance ratios outside [`LOW`, `HIGH`].
    """

    tokens: int
    mean: float
    rms: float
    largest: float
    outside: float

    @classmethod
    def of(cls, replies: Sequence[ScoredReply]) -> "Gap":
        """Describe the gaps of at least one token."""
        gaps = np.concatenate([reply.trained - reply.sampled for reply in replies])
        return cls(
            tokens=len(gaps),
            mean=float(gaps.mean()),
            rms=float(np.sqrt(np.square(gaps).mean())),
            largest=float(np.abs(gaps).max()),
            outside=float(((gaps < np.log(LOW)) | (gaps > np.log(HIGH))).mean()),
        )

    def __str__(self) -> str:
        """The figures in a line."""
        figures = f"rms {self.rms:.2g}, mean {self.mean:.2g}, largest {self.largest:.2g} nats"
        return f"{figures}; {self.outside:.2%} of {self.tokens} ratios outside [{LOW}, {HIGH}]"


def tokens_of_any_model(count: int, seed: int = 0) -> list[int]:
    """Return token ids that every vocabulary has."""
    drawn: list[int] = np.random.default_rng(seed).integers(_FIRST, _LAST, count).tolist()
    return drawn


async def scored_replies(
    client: tinker.TrainingClient, sampler: tinker.SamplingClient, **params: Any
) -> list[ScoredReply]:
    """Sample replies to random prompts of several lengths, and score them in training.

    Args:
        client: a training run.
        sampler: of its weights.
        params: of `tinker.SamplingParams`.

    Raises:
        ValueError: if a token has no log-probability.
    """
    prompts = [tokens_of_any_model(length, seed=length) for length in _LENGTHS]
    settings = tinker.SamplingParams(**{"max_tokens": _TOKENS, "stop": [], "seed": 1, **params})
    asked = (
        sampler.sample(tinker.ModelInput.from_ints(prompt), _SAMPLES, settings)
        for prompt in prompts
    )
    replies = [
        (prompt, list(sequence.tokens), sequence.logprobs or ())
        for prompt, answer in zip(prompts, await asyncio.gather(*asked), strict=True)
        for sequence in answer.sequences
    ]
    if any(len(logprobs) != len(tokens) or not tokens for _, tokens, logprobs in replies):
        raise ValueError("no log-probability with each token")
    wholes = [[*prompt, *tokens] for prompt, tokens, _ in replies]
    data = [laid_out(whole, weights=np.ones(len(whole))) for whole in wholes]
    outputs = (await client.forward(data, "cross_entropy")).loss_fn_outputs
    trained = [numbers(output["logprobs"]) for output in outputs]
    return [
        ScoredReply(prompt, tokens, _floored(logprobs), _floored(scores[-len(tokens) :]))
        for (prompt, tokens, logprobs), scores in zip(replies, trained, strict=True)
    ]


def _floored(logprobs: ArrayLike) -> Floats:
    """Return log-probabilities with a number instead of those that are none."""
    return np.maximum(np.nan_to_num(np.asarray(logprobs, np.float64), nan=_FLOOR), _FLOOR)
