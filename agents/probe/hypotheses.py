"""Hypotheses: every combination of an estimator, a weight per token and a ratio per token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.estimators import BatchAdvantages, estimators
from tokengym.rewards.arrays import Flags, Floats

SUMMED, OWN_MEAN = "summed over tokens", "mean over its tokens"
CUT = "cut replies left out"
_MICRO = "token mean of micro-batches of {}"
_CLIPS = ((0.2, 0.2), (0.2, 0.28))
_MOST_MICRO_BATCHES = 16


@dataclass(frozen=True)
class Hypothesis:
    """A way of training and the weights of tokens that follow from it.

    Attributes:
        parts: what it is made of: estimator, weighting, ratio and rows, where they are not plain.
        weights_K: of every column, up to one factor.
        biases: short names of what keeps its expectation from being the gradient of the expected
            return, up to a factor.
        estimator: the one that it is made of.
    """

    parts: tuple[str, ...]
    weights_K: Floats
    biases: tuple[str, ...]
    estimator: BatchAdvantages

    @property
    def name(self) -> str:
        """Its parts as text."""
        return ", ".join(self.parts)


class Weighting(NamedTuple):
    """A weight for each rollout's tokens, and the short name of its bias."""

    name: str
    weights_N: Floats
    bias: str = ""


class Ratio(NamedTuple):
    """Transform of each token's importance ratio; the signs are those of its advantage."""

    name: str
    value_K: Floats
    positive_K: Floats
    negative_K: Floats

    def of(self, advantages_K: Floats) -> Floats:
        """Return the factor of each token under given advantages."""
        return np.where(advantages_K >= 0, self.positive_K, self.negative_K) * self.value_K


def weightings(batch: ProbeBatch, mask_K: Flags) -> list[Weighting]:
    """Return how the tokens of rollouts can be averaged."""
    counts_N = np.maximum(batch.counts_N(mask_K), 1.0)
    count = len(counts_N)
    known = [Weighting(SUMMED, np.ones(count)), Weighting(OWN_MEAN, 1.0 / counts_N, "length")]
    for size in range(2, count):
        if count % size == 0 and count // size <= _MOST_MICRO_BATCHES:
            totals = counts_N.reshape(-1, size).sum(axis=1)
            shares_N = np.repeat(1.0 / totals, size)
            known.append(Weighting(_MICRO.format(size), shares_N, "micro-batches"))
    return known


def ratios(batch: ProbeBatch) -> list[Ratio]:
    """Return what importance ratios can become; one plain entry on policy."""
    ones_K = np.ones_like(batch.log_ratio_K)
    if not batch.off_policy:
        return [Ratio("", ones_K, ones_K, ones_K)]
    ratio_K = np.exp(batch.log_ratio_K)
    known = [Ratio("times the importance ratio", ratio_K, ones_K, ones_K)]
    for low, high in _CLIPS:
        inside = _inside(ratio_K, 1 - low, 1 + high)
        known.append(Ratio(f"times the ratio, clipped at {low:g}, {high:g}", ratio_K, *inside))
        bounded_K = np.clip(ratio_K, 1 - low, 1 + high)
        name = f"times the bounded ratio ({low:g}, {high:g})"
        known.append(Ratio(name, bounded_K, ones_K, ones_K))
    known.append(Ratio("times the ratio, at most 2", np.minimum(ratio_K, 2.0), ones_K, ones_K))
    counts_N = np.maximum(batch.counts_N(batch.own_K), 1.0)
    means_N = np.bincount(batch.table.rollout_K, batch.log_ratio_K, len(counts_N)) / counts_N
    sequence_K = np.exp(means_N)[batch.table.rollout_K]
    known.append(Ratio("times the ratio of its sequence (GSPO)", sequence_K, ones_K, ones_K))
    inside = _inside(sequence_K, 1 - 3e-4, 1 + 4e-4)
    known.append(Ratio("times the ratio of its sequence, clipped (GSPO)", sequence_K, *inside))
    return known


def _inside(ratio_K: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Return 1 where clipping leaves a positive advantage its gradient, and a negative one."""
    return (ratio_K <= high).astype(np.float64), (ratio_K >= low).astype(np.float64)


def build(
    batch: ProbeBatch,
    estimator: BatchAdvantages,
    weighting: Weighting,
    ratio: Ratio,
    mask_K: Flags,
    rows: tuple[str, Flags] | None = None,
) -> Hypothesis:
    """Return the weights of tokens that follow from the parts."""
    rollout_K = batch.table.rollout_K
    weights_K = estimator.advantages_K * weighting.weights_N[rollout_K] * mask_K
    weights_K = weights_K * ratio.of(estimator.advantages_K)
    name, rows_N = rows or ("", np.ones(len(batch.rollouts), np.bool_))
    if batch.seen_N is not None:
        rows_N = rows_N & batch.seen_N
    parts = (estimator.name, weighting.name, ratio.name, name)
    biases = (estimator.bias, weighting.bias, "cut replies" if name else "")
    weights_K = np.where(rows_N[rollout_K], weights_K, 0.0)
    said, named = (tuple(filter(None, words)) for words in (parts, biases))
    return Hypothesis(said, weights_K, named, estimator)


def hypotheses(batch: ProbeBatch) -> Iterator[Hypothesis]:
    """Yield all known ways of training on a batch without a fault, the unbiased ones first."""
    kept: Sequence[tuple[str, Flags] | None] = [None]
    if batch.cut_N.any() and not batch.cut_N.all():
        kept = [None, (CUT, ~batch.cut_N)]
    of_rewards = list(estimators(batch, batch.rewards_N, batch.groups_N))
    for weighting in weightings(batch, batch.own_K):
        for ratio in ratios(batch):
            for estimator in of_rewards:
                for rows in kept:
                    yield build(batch, estimator, weighting, ratio, batch.own_K, rows)
