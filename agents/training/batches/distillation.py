"""On-policy distillation: the student samples, and a teacher scores each token.

A token's advantage is minus the reverse Kullback-Leibler divergence, as far as the sampled token
shows it: the teacher's log-probability less the student's (Lu et al. 2025, "On-Policy
Distillation"). What the world pays is reported and not learned from.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import tinker
from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.training.batches.datums import numbers, rollout_data, tensor


@dataclass(frozen=True)
class Distilled:
    """Rollouts as a teacher sees them.

    Attributes:
        data: to train on.
        advantages: mean advantage of each rollout's sampled tokens, in order.
        metrics: `teacher/kl`, the mean reverse KL of a sampled token, in nats.
    """

    data: Sequence[tinker.Datum]
    advantages: Sequence[float]
    metrics: dict[str, float]


async def distill(rollouts: Sequence[Trajectory], teacher: tinker.SamplingClient) -> Distilled:
    """Return rollouts as data whose advantages are a teacher's.

    Args:
        rollouts: of the student.
        teacher: reads and writes the same tokens.
    """
    taught = await asyncio.gather(*(_teach_rollout(rollout, teacher) for rollout in rollouts))
    totals = [sum(datum.total for datum in data) for data in taught]
    tokens = [sum(datum.tokens for datum in data) for data in taught]
    return Distilled(
        [datum.data for data in taught for datum in data],
        [total / max(count, 1) for total, count in zip(totals, tokens, strict=True)],
        {"teacher/kl": -sum(totals) / max(sum(tokens), 1)},
    )


class _Taught(NamedTuple):
    """A datum with a teacher's advantages, their sum, and the number of sampled tokens."""

    data: tinker.Datum
    total: float
    tokens: int


async def _teach_rollout(rollout: Trajectory, teacher: tinker.SamplingClient) -> list[_Taught]:
    data = rollout_data(rollout, [0.0] * len(rollout.transitions))
    return list(await asyncio.gather(*(_teach(datum, teacher) for datum in data)))


async def _teach(datum: tinker.Datum, teacher: tinker.SamplingClient) -> _Taught:
    inputs = datum.loss_fn_inputs
    last = int(inputs["target_tokens"].data[-1])
    logprobs = await teacher.compute_logprobs(datum.model_input.append_int(last))
    sampled, mask = numbers(inputs["logprobs"]), numbers(inputs["mask"])
    advantages = np.where(mask > 0, np.array(logprobs[1:], np.float64) - sampled, 0.0)
    taught_inputs = {**inputs, "advantages": tensor(advantages.astype(np.float32))}
    taught = tinker.Datum(model_input=datum.model_input, loss_fn_inputs=taught_inputs)
    return _Taught(taught, float(advantages.sum()), int(mask.sum()))
