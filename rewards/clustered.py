"""Intervals for n Tasks of k rollouts each: rollouts of one Task are not independent, Tasks are.

The mean over Tasks of the means within them is the mean of all rollouts, as every Task has the same
number; its variance is that of the Task means, whatever rollouts of a Task have in common.
A rollout that was lost is NaN: its Task counts with the others of its rollouts, or not at all.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate

_CONFIDENCE = 0.95
_FEW = 5.0
"""Tasks' worth of a share's rarer outcome below which a normal interval would be too short."""
_RESAMPLES = 1000
_CHUNK = 64
"""Resamples generated at once; bounds memory if there are many types of clusters."""
_POWER = 0.8
"""Chance of finding the smallest difference that a sample is stated to show."""


class Comparison(NamedTuple):
    """Two policies on the same Tasks.

    Attributes:
        difference: mean return of the first less the second, with its 95 % interval.
        p_value: two-sided; 1 where the policies earn the same on every Task.
        detectable: smallest true difference that such a sample finds in four of five cases.
    """

    difference: Estimate
    p_value: float
    detectable: float


def clustered_mean(values_TK: npt.ArrayLike) -> Estimate:
    """Return the mean of all rollouts; the interval is Student's over the means of Tasks.

    Args:
        values_TK: shape (Tasks, rollouts); NaN for what was lost.
    """
    return mean_estimate(_known(task_means(values_TK)).tolist())


def task_means(values_TK: npt.ArrayLike) -> Floats:
    """Return the mean of each Task's rollouts, NaN where all were lost; shape (Tasks,).

    Args:
        values_TK: shape (Tasks, rollouts); NaN for what was lost.
    """
    values = _rectangle(values_TK)
    known_TK = ~np.isnan(values)
    counts_T = known_TK.sum(axis=1)
    sums_T = np.where(known_TK, values, 0.0).sum(axis=1)
    means_T: Floats = np.where(counts_T > 0, sums_T / np.maximum(counts_T, 1), np.nan)
    return means_T


def mean_over_clusters(values_N: npt.ArrayLike, cluster_N: npt.ArrayLike) -> Estimate:
    """Return the mean of values in clusters of any sizes, with a cluster-robust 95 % interval.

    The error is that of a ratio of sums over clusters, by Student's law with one degree of freedom
    less than there are clusters.

    Args:
        values_N: shape (N,), at least one.
        cluster_N: number of the cluster of each, integers from 0, shape (N,).
    """
    values, cluster = np.asarray(values_N, np.float64), np.asarray(cluster_N)
    mean = float(values.mean())
    sums_C = np.bincount(cluster, values - mean)[np.unique(cluster)]
    clusters = len(sums_C)
    if clusters == 1:
        return Estimate(mean, mean, mean, 1)
    from scipy.special import stdtrit

    error = math.sqrt(clusters / (clusters - 1) * float(sums_C @ sums_C)) / len(values)
    half = float(stdtrit(clusters - 1, 0.5 + _CONFIDENCE / 2.0)) * error
    return Estimate(mean, mean - half, mean + half, clusters)


def clustered_share(happened_TK: npt.ArrayLike) -> Estimate:
    """Return the mean of chances or shares; where one outcome is rare, by Clopper and Pearson.

    A normal interval has no width at 0 and too little near it. The exact one counts every Task
    once, as if its rollouts always agreed, so it is at least as long as necessary.

    Args:
        happened_TK: in [0, 1], shape (Tasks, rollouts); NaN for what was lost.
    """
    shares_T = _known(task_means(happened_TK))
    tasks = len(shares_T)
    count = float(shares_T.sum())
    if min(count, tasks - count) >= _FEW:
        estimate = mean_estimate(shares_T.tolist())
        return estimate._replace(low=max(estimate.low, 0.0), high=min(estimate.high, 1.0))
    return share_estimate(count, tasks)


def resampled_statistic(
    sums_TF: npt.ArrayLike, statistic: Callable[[Floats], Floats], rng: np.random.Generator
) -> Estimate:
    """Return a statistic of sums over Tasks, such as F1 of counts, with a bootstrap interval.

    Tasks are drawn with replacement, 1,000 times; the interval is that of percentiles.

    Args:
        sums_TF: what each Task adds to each sum, shape (Tasks, sums).
        statistic: from sums, shape (R, sums), to values, shape (R,).
        rng: draws the samples.
    """
    sums = np.asarray(sums_TF, np.float64)
    tasks = len(sums)
    value = float(statistic(sums.sum(axis=0, keepdims=True))[0])
    drawn_RT = rng.multinomial(tasks, np.full(tasks, 1.0 / tasks), _RESAMPLES)
    values_R = statistic(drawn_RT @ sums)
    tail = 0.5 - _CONFIDENCE / 2.0
    low, high = np.quantile(values_R, (tail, 1.0 - tail)).tolist()
    return Estimate(value, min(low, value), max(high, value), tasks)


def resampled_rates(
    rates: Sequence[tuple[Floats, Floats]], rng: np.random.Generator, resamples: int
) -> Floats:
    """Return rates of resampled clusters, shape (resamples, rates).

    Args:
        rates: for each rate what it counts, and of how many, in each cluster, both of shape (C,).
        rng: draws the samples.
        resamples: how many.
    """
    # Where clusters are of few types, resampling how many there are of each kind is the same
    # bootstrap at a fraction of the work.
    columns = np.stack([column for pair in rates for column in pair], axis=1)
    kinds_KC, count_K = np.unique(columns, axis=0, return_counts=True)
    shares_K = count_K / count_K.sum()
    sums_RC = np.concatenate(
        [
            rng.multinomial(len(columns), shares_K, min(_CHUNK, resamples - done)) @ kinds_KC
            for done in range(0, resamples, _CHUNK)
        ]
    )
    above_RS, below_RS = sums_RC[:, ::2], sums_RC[:, 1::2]
    rates_RS: Floats = np.divide(
        above_RS, below_RS, out=np.zeros_like(above_RS), where=below_RS > 0
    )
    return rates_RS


def paired_comparison(first_TK: npt.ArrayLike, second_TK: npt.ArrayLike) -> Comparison:
    """Compare two policies by the differences of their mean returns on each Task.

    A Task's difficulty is the same for both, and cancels.

    Args:
        first_TK: returns of the first, shape (Tasks, rollouts); NaN for what was lost.
        second_TK: returns of the second on the same Tasks; the number of rollouts may differ.

    Raises:
        ValueError: if the numbers of Tasks differ, or fewer than two were played by both.
    """
    first, second = task_means(first_TK), task_means(second_TK)
    if len(first) != len(second):
        raise ValueError(f"a comparison needs the same Tasks, got {len(first)} and {len(second)}")
    differences_T = _known(first - second)
    tasks = len(differences_T)
    if tasks < 2:
        raise ValueError(f"a comparison needs two Tasks that both played, got {tasks}")
    error = float(differences_T.std(ddof=1)) / math.sqrt(tasks)
    difference = mean_estimate(differences_T.tolist())
    from scipy.special import stdtr, stdtrit

    freedom = tasks - 1
    if error == 0.0:
        return Comparison(difference, 0.0 if difference.value else 1.0, 0.0)
    p_value = 2.0 * float(stdtr(freedom, -abs(difference.value) / error))
    reach = float(stdtrit(freedom, 0.5 + _CONFIDENCE / 2.0)) + float(stdtrit(freedom, _POWER))
    return Comparison(difference, p_value, reach * error)


def holm(p_values: npt.ArrayLike) -> list[float]:
    """Return p-values corrected for how many there are; Holm (1979).

    Args:
        p_values: of the comparisons, in any order.
    """
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values)
    scaled = values[order] * np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    listed: list[float] = corrected.tolist()
    return listed


def pass_at_k(succeeded_TK: npt.ArrayLike, k: int) -> Estimate:
    """Return the chance that at least one of k rollouts of a Task succeeds; Chen et al. (2021).

    Of n rollouts with c successes 1 - C(n - c, k) / C(n, k) estimates it without bias.

    Args:
        succeeded_TK: 1 or 0, shape (Tasks, n); NaN for lost rollouts. A Task with fewer than k
            are left does not count.
        k: from 1 to n.

    Raises:
        ValueError: if there are fewer than k rollouts of a Task.
    """
    succeeded = _rectangle(succeeded_TK)
    rollouts = succeeded.shape[1]
    if not 1 <= k <= rollouts:
        raise ValueError(f"k must be from 1 to the {rollouts} rollouts of a Task, got {k}")
    played_T = (~np.isnan(succeeded)).sum(axis=1).tolist()
    failures_T = (succeeded == 0.0).sum(axis=1).tolist()
    # C(n - c, k) / C(n, k), where the numerator is 0 if there are fewer failures than k.
    return clustered_share(
        [
            [1.0 - math.comb(failures, k) / math.comb(played, k) if played >= k else math.nan]
            for failures, played in zip(failures_T, played_T, strict=True)
        ]
    )


def best_of_k(values_TK: npt.ArrayLike, k: int) -> Estimate:
    """Return the mean over Tasks of the best of k rollouts, over all choices of k of them.

    Args:
        values_TK: what the rollouts earn, shape (Tasks, n).
        k: from 1 to n.

    Raises:
        ValueError: if there are fewer than k rollouts of a Task.
    """
    sorted_TK = np.sort(_rectangle(values_TK), axis=1)
    rollouts = sorted_TK.shape[1]
    if not 1 <= k <= rollouts:
        raise ValueError(f"k must be from 1 to the {rollouts} rollouts of a Task, got {k}")
    # Of all choices these have the n-th smallest for their best one.
    best_K = np.array([math.comb(n, k - 1) for n in range(rollouts)]) / math.comb(rollouts, k)
    return mean_estimate((sorted_TK @ best_K).tolist())


def _known(values: Floats) -> Floats:
    """Return the values that are not NaN."""
    return values[~np.isnan(values)]


def _rectangle(values_TK: npt.ArrayLike) -> Floats:
    values = np.asarray(values_TK, np.float64)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"expected the shape (Tasks, rollouts), got {values.shape}")
    return values
