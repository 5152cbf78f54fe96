"""On-policy distillation: the student samples, and a teacher scores each token.

A token's advantage is minus the reverse Kullback-Leibler divergence, as far as the sampled token
shows it: the teacher's log-probability less the student's (Lu et al. 2025, "On-Policy
Distillation"). What the world pays is reported and not learned from.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tinker
from tinker_cookbook.rl.types import Trajectory

from tokengym.agents.training.batches.datums import numbers, rollout_data


class Distilled(NamedTuple):
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
    taught = await asyncio.gather(*(_teach(rollout, teacher) for rollout in rollouts))
    total, tokens = sum(total for _, total, _ in taught), sum(count for *_, count in taught)
    return Distilled(
        [datum for data, _, _ in taught for datum in data],
        [of_rollout / max(count, 1) for _, of_rollout, count in taught],
        {"teacher/kl": -total / max(tokens, 1)},
    )


async def _teach(
    rollout: Trajectory, teacher: tinker.SamplingClient
) -> tuple[list[tinker.Datum], float, int]:
    """Return a rollout's data with a teacher's advantages, their sum, and the sampled tokens."""
    data = rollout_data(rollout, [0.0] * len(rollout.transitions))
    lasts = (int(datum.loss_fn_inputs["target_tokens"].data[-1]) for datum in data)
    whole = [datum.model_input.append_int(last) for datum, last in zip(data, lasts, strict=True)]
    total, tokens = 0.0, 0
    for datum, logprobs in zip(
        data, await asyncio.gather(*map(teacher.compute_logprobs, whole)), strict=True
    ):
        inputs = datum.loss_fn_inputs
        sampled, mask = numbers(inputs["logprobs"]), numbers(inputs["mask"])
        advantages = np.where(mask > 0, np.array(logprobs[1:], np.float64) - sampled, 0.0)
        inputs["advantages"] = tinker.TensorData.from_numpy(advantages.astype(np.float32))
        total += float(advantages.sum())
        tokens += int(mask.sum())
    return data, total, tokens
