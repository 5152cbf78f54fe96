"""Reward ties: how often the rollouts of one group earn the same.

A group whose rewards all tie has no advantage and teaches nothing. The group rate grows with the
group's size by itself and must not be compared across sizes; the pair rate may.
"""

from collections.abc import Iterable, Sequence
from typing import TypedDict

import numpy as np


class TieStatistics(TypedDict):
    """Tie statistics of a set of groups; every rate is 0 when no group is eligible."""

    reward_tie_eligible_groups: int
    """Groups with at least two rewards."""
    reward_tie_group_rate: float
    """Groups with any repeated reward / eligible groups."""
    reward_uniform_group_rate: float
    """Groups whose rewards all tie / eligible groups."""
    reward_tie_pair_rate: float
    """Tied pairs / pairs, pooled over eligible groups."""
    reward_unique_fraction_mean: float
    """Mean over eligible groups of distinct rewards / size."""


def bucket_sizes(rewards: Sequence[float], eps: float = 1e-6) -> list[int]:
    """Return how many rewards tie, bucket by bucket, in ascending order of reward.

    A bucket opens at the smallest reward not yet in one and takes every reward within `eps` of
    that anchor. Ties do not chain: 0, 0.8 eps and 1.6 eps make two buckets.

    Args:
        rewards: any number of finite rewards.
        eps: largest distance from the anchor that still ties, `>= 0`.

    Raises:
        ValueError: if a reward is not finite or `eps` is negative.
    """
    if not eps >= 0:
        raise ValueError(f"eps must be >= 0, got {eps!r}")
    values = np.sort(np.asarray(rewards, dtype=np.float64))
    if not np.isfinite(values).all():
        raise ValueError(f"rewards must be finite, got {list(rewards)}")
    sizes: list[int] = []
    start = 0
    while start < len(values):
        end = start + int(np.searchsorted(values[start:] - values[start], eps, side="right"))
        sizes.append(end - start)
        start = end
    return sizes


def tie_statistics(groups: Iterable[Sequence[float]], eps: float = 1e-6) -> TieStatistics:
    """Return the tie statistics of groups of returns.

    Args:
        groups: returns of each group's rollouts, those to be counted only; a group of fewer than
            two is not eligible.
        eps: largest distance from a bucket's first element that still ties, `>= 0`.

    Raises:
        ValueError: if a return is not finite or `eps` is negative.
    """
    eligible = repeated = uniform = tied_pairs = pairs = 0
    unique_fractions = 0.0
    for group in groups:
        sizes = bucket_sizes(group, eps)
        size = sum(sizes)
        if size < 2:
            continue
        eligible += 1
        repeated += len(sizes) < size
        uniform += len(sizes) == 1
        tied_pairs += sum(n * (n - 1) // 2 for n in sizes)
        pairs += size * (size - 1) // 2
        unique_fractions += len(sizes) / size
    return TieStatistics(
        reward_tie_eligible_groups=eligible,
        reward_tie_group_rate=repeated / eligible if eligible else 0.0,
        reward_uniform_group_rate=uniform / eligible if eligible else 0.0,
        reward_tie_pair_rate=tied_pairs / pairs if pairs else 0.0,
        reward_unique_fraction_mean=unique_fractions / eligible if eligible else 0.0,
    )
