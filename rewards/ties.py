"""Reward ties: how often rollouts of one group earn the same, and how often on the reward floor.

A group whose rewards all tie has no advantage and no gradient. The group rate grows with group
size by itself, so it must not be compared across sizes; the pair rate may.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats, Ints
from tokengym.rewards.clustered import resampled_rates
from tokengym.rewards.estimates import Estimate, share_estimate

Integers = npt.NDArray[np.integer]
Groups = Iterable[Sequence[float]] | npt.NDArray[np.floating]
"""Rewards of each group's rollouts; an array (N, G) where all groups are of one size."""

TOLERANCE = 1e-6
"""Default distance within which rewards count as equal."""
_FEW_GROUPS = 10
"""Fewer clusters than this that differ are too few to resample."""


class TieStatistics(TypedDict):
    """Tie statistics of a set of groups; every rate is 0 when no group is eligible."""

    reward_tie_eligible_groups: int
    """Groups with at least two rewards."""
    reward_tie_group_rate: float
    """Groups with any repeated reward / eligible groups."""
    reward_uniform_group_rate: float
    """Groups whose rewards all tie, so that no rollout has an advantage / eligible groups."""
    reward_tie_pair_rate: float
    """Tied pairs / pairs, pooled over eligible groups."""
    reward_unique_fraction_mean: float
    """Mean over eligible groups of distinct rewards / size."""


@dataclass(frozen=True)
class TieCounts:
    """The ties of each group, from which every statistic here is computed; see `tie_counts`.

    N is the number of eligible groups, G the largest of their sizes, C the number of clusters of
    groups that have something in common, as those of one Task.

    Attributes:
        size_N: rewards of each group, at least 2.
        distinct_N: distinct rewards of each.
        below_N: rewards of each on the floor; 0 without a threshold.
        rank_GN: of each reward, in ascending order, how many earlier ones it ties with; 0 past the
            end of a group.
        cluster_N: number of the cluster of each group, from 0.
    """

    size_N: Integers
    distinct_N: Integers
    below_N: Integers
    rank_GN: Integers = field(repr=False)
    cluster_N: Integers = field(repr=False)

    def statistics(self) -> TieStatistics:
        """Return the tie statistics over all groups."""
        rates = {name: _rate(*pair) for name, pair in self._tie_rates().items()}
        del rates["effective_group_size"]
        return cast("TieStatistics", {"reward_tie_eligible_groups": len(self.size_N), **rates})

    def intervals(
        self,
        rng: np.random.Generator,
        *,
        sizes: Sequence[int] = (),
        level: float = 0.95,
        resamples: int = 1000,
    ) -> dict[str, Estimate]:
        """Return every rate with its interval over clusters of groups.

        Rollouts of one group share a prompt and are not independent, nor are groups of one Task:
        clusters are counted. Shares of groups have intervals of Clopper and Pearson, other rates
        those of the percentile bootstrap; where fewer than 10 clusters differ from 0 or from 1 it
        shows too little, and a rate has the wider interval of a share of clusters of its size.

        Args:
            rng: generates the resamples.
            sizes: group sizes, at least 2, for which to add `zero_advantage_probability_SIZE`.
            level: coverage, in (0, 1).
            resamples: number of resamples, at least 1.

        Returns:
            rates by name, pooled over eligible groups, 0 where there is nothing to count:

            - the rates of `TieStatistics`;
            - `floor_mass`: share of the rewards below the floor's threshold;
            - `floor_tie_pair_rate`: tied pairs / pairs, among pairs with both rewards on the floor;
            - `interior_tie_pair_rate`: the same among pairs with no reward on the floor;
            - `floor_tie_share`: tied pairs on the floor / all tied pairs;
            - `effective_group_size`: mean over groups of 1 / (chance that two rewards drawn with
              replacement tie): k for k rewards that occur equally often (Hill's number of order 2);
            - `zero_advantage_probability_SIZE`: chance that SIZE rollouts of one prompt all tie,
              estimated without bias as the share of all choices of SIZE rollouts that tie, averaged
              over groups of SIZE or more; exact where distinct rewards are more than eps apart.

        Raises:
            ValueError: if a level, a size or the number of resamples is out of range.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be in (0, 1), got {level!r}")
        if resamples < 1:
            raise ValueError(f"resamples must be at least 1, got {resamples!r}")
        rates = self._tie_rates() | self._floor_rates()
        rates |= {f"zero_advantage_probability_{size}": self._all_tie(size) for size in sizes}
        if not len(self.size_N):
            return dict.fromkeys(rates, Estimate(0.0, 0.0, 0.0))
        clustered = [self._by_cluster(pair) for pair in rates.values()]
        rates_RS = resampled_rates(clustered, rng, resamples)
        tail = (1.0 - level) / 2.0
        low_S, high_S = np.quantile(rates_RS, (tail, 1.0 - tail), axis=0)
        found = {}
        for name, pair, low, high in zip(rates, clustered, low_S, high_S, strict=True):
            sized = name == "effective_group_size"
            if low == high or (not sized and _hides_from_resampling(*pair)):
                bounds = (1.0, len(self.rank_GN)) if sized else (0.0, 1.0)
                found[name] = _share(*pair, level, bounds)
            else:
                found[name] = Estimate(_rate(*pair), float(low), float(high), len(pair[0]))
        return found

    def dead_group_rates(
        self, sizes: Sequence[int], rng: np.random.Generator, *, resamples: int = 1000
    ) -> list[Estimate]:
        """Return the chance that groups of any size tie.

        Up to the smallest group, of n rewards, it is estimated without bias, see `intervals`.
        Beyond, the chance X that a rollout ties with another one is taken to have a beta law over
        the rollouts that tie in half a group already, m = n // 2. As groups of G tie with chance
        E[X^(G-1)], those of m, m + 1 and n fix the law. Whatever it is, groups of G tie no more
        often than those of n and, by Jensen's inequality, no less than the power (G-1)/(n-1) of
        that: these bound the prediction, and the interval where too few clusters differ to
        resample.

        Args:
            sizes: group sizes, at least 2.
            rng: generates the resamples.
            resamples: their number R, at least 1.

        Raises:
            ValueError: if a size is below 2, there is no group, or one of fewer than the three
                rewards that a prediction takes.
        """
        seen = min(self.size_N.tolist(), default=0)
        if min(sizes) < 2 or seen < min(3, max(sizes)):
            raise ValueError(f"groups of {seen} rewards cannot predict groups of {[*sizes]}")
        half = seen // 2
        known = sorted({half, half + 1, seen, *sizes} & {*range(2, seen + 1)})
        pairs = {size: self._by_cluster(self._all_tie(size)) for size in known}
        drawn_RK = resampled_rates([*pairs.values()], rng, resamples)
        values_K = [_rate(*pair) for pair in pairs.values()]
        # In the first row the rates themselves, in the others those of resamples.
        rates = dict(zip(known, np.vstack([values_K, drawn_RK]).T, strict=True))
        rates[1] = np.ones(resamples + 1)
        estimates = []
        for size in sizes:
            if size > seen:
                rates[size] = _extrapolated(rates, half, seen, size)
            base = min(size, seen)
            low, high = np.quantile(rates[size][1:], (0.025, 0.975)).tolist()
            if _hides_from_resampling(*pairs[base]):
                _, low, high, _ = _share(*pairs[base], 0.95)
                low **= (size - 1) / (base - 1)
            estimates.append(Estimate(float(rates[size][0]), low, high, len(pairs[base][0])))
        return estimates

    def _by_cluster(self, pair: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
        """Return the sums over clusters, shape (C,), of numerators and denominators by group."""
        above_N, below_N = pair
        return (
            np.bincount(self.cluster_N, above_N).astype(np.float64),
            np.bincount(self.cluster_N, below_N).astype(np.float64),
        )

    def _tie_rates(self) -> dict[str, tuple[Floats, Floats]]:
        """Return numerators and denominators by group, shape (N,); a rate is their sums' ratio."""
        size_N = self.size_N.astype(np.float64)
        tied_N = self.rank_GN.sum(axis=0).astype(np.float64)
        one_N = np.ones_like(size_N)
        return {
            "reward_tie_group_rate": ((tied_N > 0).astype(np.float64), one_N),
            "reward_uniform_group_rate": ((self.distinct_N == 1).astype(np.float64), one_N),
            "reward_tie_pair_rate": (tied_N, size_N * (size_N - 1.0) / 2.0),
            "reward_unique_fraction_mean": (self.distinct_N / size_N, one_N),
            "effective_group_size": (size_N**2 / (size_N + 2.0 * tied_N), one_N),
        }

    def _floor_rates(self) -> dict[str, tuple[Floats, Floats]]:
        """Return the same, like `_tie_rates`, of the rates of the floor."""
        size_N, below_N = self.size_N.astype(np.float64), self.below_N.astype(np.float64)
        tied_N = self.rank_GN.sum(axis=0).astype(np.float64)
        # Rewards on the floor come first; of those above it, only ties among themselves count.
        above_GN = np.arange(len(self.rank_GN))[:, None] - self.below_N
        floor_tied_N = self.rank_GN.sum(axis=0, where=above_GN < 0).astype(np.float64)
        among_GN = np.minimum(self.rank_GN, above_GN)
        interior_tied_N = among_GN.sum(axis=0, where=above_GN > 0).astype(np.float64)
        rest_N = size_N - below_N
        return {
            "floor_mass": (below_N, size_N),
            "floor_tie_pair_rate": (floor_tied_N, below_N * (below_N - 1.0) / 2.0),
            "interior_tie_pair_rate": (interior_tied_N, rest_N * (rest_N - 1.0) / 2.0),
            "floor_tie_share": (floor_tied_N, tied_N),
        }

    def _all_tie(self, size: int) -> tuple[Floats, Floats]:
        """Return, by group, the share of choices of `size` rewards that tie, and if there is any.

        Of a bucket of n these are C(n, size), the sum of C(r, size - 1) over its ranks r < n.
        """
        if size < 2:
            raise ValueError(f"a group that can tie has a size of at least 2, got {size!r}")
        most = len(self.rank_GN)
        table = np.array([math.comb(rank, size - 1) for rank in range(most)] or [0], np.float64)
        choices = np.array([math.comb(count, size) for count in range(most + 1)], np.float64)
        choices_N = choices[self.size_N]
        large_N = choices_N > 0
        tied_N = table[self.rank_GN].sum(axis=0) if most else np.zeros(0)
        share_N = np.divide(tied_N, choices_N, out=np.zeros_like(choices_N), where=large_N)
        return share_N, large_N.astype(np.float64)


_WIDE, _HALVINGS = 14.0, 60
"""Logarithm of the largest sum of a beta distribution's parameters, and steps to find it by."""


def tie_statistics(
    groups: Groups, eps: float = TOLERANCE, *, truncated: Iterable[Sequence[bool]] | None = None
) -> TieStatistics:
    """Return the tie statistics of groups of returns.

    Args:
        groups: returns of each group's rollouts; a group of fewer than two is not eligible.
        eps: largest distance from a bucket's first element that still ties, `>= 0`.
        truncated: which rollouts were cut short, shaped like `groups`; they are left out (default:
            none).

    Raises:
        ValueError: if a return that counts is not finite, `eps` is negative or shapes differ.
    """
    return tie_counts(groups, eps, truncated=truncated).statistics()


def tie_counts(
    groups: Groups,
    eps: float = TOLERANCE,
    *,
    floor: float | None = None,
    truncated: Iterable[Sequence[bool]] | None = None,
    clusters: Sequence[str] | Sequence[int] | None = None,
) -> TieCounts:
    """Count how the returns of each eligible group tie.

    Rewards are sorted. A bucket opens at the smallest reward not yet in one and takes every reward
    within `eps` of that anchor. Ties do not chain: 0, 0.8 eps and 1.6 eps make two buckets.

    Args:
        groups: returns of each group's rollouts; a group of fewer than two is not eligible.
        eps: largest distance from a bucket's first element that still ties, `>= 0`.
        floor: rewards strictly below it lie on the floor, such as `control.SAFE_RETURN` for
            energy.
        truncated: which rollouts were cut short, shaped like `groups`; they are left out.
        clusters: what groups may have in common, one for each, such as its Task; by default each is
            independent of the others.

    Raises:
        ValueError: if a return that counts is not finite, `eps` is negative or shapes differ.
    """
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps must be >= 0 and finite, got {eps!r}")
    values_NG, size_N = _table(groups, truncated)
    eligible_N = size_N >= 2
    labels_N = np.arange(len(size_N)) if clusters is None else np.asarray(clusters)
    _, cluster_N = np.unique(labels_N[eligible_N], return_inverse=True)
    if not eligible_N.all():
        values_NG, size_N = values_NG[eligible_N], size_N[eligible_N]
    values_NG.sort(axis=1)
    most = int(size_N.max(initial=0))
    values_GN = np.ascontiguousarray(values_NG[:, :most].T)
    rank_GN = np.zeros(values_GN.shape, np.int32)
    distinct_N = np.ones_like(size_N)
    anchor_N = values_GN[0].copy() if most else np.zeros(0)
    for position in range(1, most):
        value_N = values_GN[position]
        # Padding is infinite: its distance is infinite or NaN, and neither ties.
        with np.errstate(invalid="ignore"):
            opens_N = ~(value_N - anchor_N <= eps)
        np.add(rank_GN[position - 1], 1, out=rank_GN[position], where=~opens_N)
        np.copyto(anchor_N, value_N, where=opens_N)
        distinct_N += opens_N & (size_N > position)
    below_N = np.zeros_like(size_N) if floor is None else (values_GN < floor).sum(axis=0)
    return TieCounts(size_N, distinct_N, below_N, rank_GN, cluster_N)


def _table(groups: Groups, truncated: Iterable[Sequence[bool]] | None) -> tuple[Floats, Ints]:
    """Return a new array of rewards (N, G), infinite where left out, and the groups' sizes."""
    rows = groups if isinstance(groups, np.ndarray) else list(groups)
    size_N = np.fromiter(map(len, rows), np.int64)
    inside_NG = np.arange(size_N.max(initial=0)) < size_N[:, None]
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        values_NG = rows.astype(np.float64)
    else:
        values_NG = np.full(inside_NG.shape, np.inf)
        if inside_NG.any():
            values_NG[inside_NG] = np.concatenate([np.asarray(row, np.float64) for row in rows])
    kept_NG = inside_NG
    if truncated is not None:
        flags = list(truncated)
        if [len(row) for row in flags] != size_N.tolist():
            raise ValueError(
                f"truncated must be shaped like groups, got {len(flags)} rows for {len(size_N)}"
            )
        if inside_NG.any():
            kept_NG = inside_NG.copy()
            kept_NG[inside_NG] = ~np.concatenate([np.asarray(row, np.bool_) for row in flags])
            values_NG[~kept_NG] = np.inf
            size_N = kept_NG.sum(axis=1)
    if (~np.isfinite(values_NG) & kept_NG).any():
        raise ValueError("rewards must be finite, got NaN or an infinite one")
    return values_NG, size_N


def _rate(above_N: Floats, below_N: Floats) -> float:
    total = float(below_N.sum())
    return float(above_N.sum()) / total if total else 0.0


def _extrapolated(rates: Mapping[int, Floats], half: int, seen: int, size: int) -> Floats:
    """Return the rates of dead groups of a size beyond `seen`; see `TieCounts.dead_group_rates`."""
    base_R = rates[half]
    # Of no group that ties by half there is no law: all of them stay 0.
    mean_R, dead_R = (
        np.divide(rates[at], base_R, out=np.zeros_like(base_R), where=base_R > 0)
        for at in (half + 1, seen)
    )

    def moments(sum_R: Floats, first: int, end: int) -> Floats:
        """Return ratios of moments of beta laws by the mean and the sum of the parameters."""
        step = np.arange(first, end)[:, None]
        ratio_R: Floats = np.prod((mean_R * sum_R + step) / (sum_R + step), axis=0)
        return ratio_R

    low_R, high_R = np.full_like(base_R, -_WIDE), np.full_like(base_R, _WIDE)
    for _ in range(_HALVINGS):  # the moments fall with the sum
        middle_R = (low_R + high_R) / 2.0
        above_R = moments(np.exp(middle_R), 0, seen - half) > dead_R
        low_R, high_R = np.where(above_R, middle_R, low_R), np.where(above_R, high_R, middle_R)
    predicted_R = rates[seen] * moments(np.exp(low_R), seen - half, size - half)
    # Rates of few groups can be those of no law at all, which the fit misses: no law is below this.
    least_R: Floats = rates[seen] ** ((size - 1) / (seen - 1))
    return np.maximum(predicted_R, least_R)


def _hides_from_resampling(above_N: Floats, below_N: Floats) -> bool:
    """Return whether a rate is a share of clusters, or too few of them differ from 0 or from 1."""
    counted = below_N > 0
    low, high = above_N[counted] > 0, above_N[counted] < below_N[counted]
    return not (low & high).any() or min(low.sum(), high.sum()) < _FEW_GROUPS


def _share(
    above_N: Floats, below_N: Floats, level: float, bounds: tuple[float, float] = (0.0, 1.0)
) -> Estimate:
    if not below_N.any():
        return Estimate(0.0, 0.0, 0.0)
    # Clusters of unequal weight tell as much as fewer equal ones; Kish (1965).
    counted = float(below_N.sum()) ** 2 / float((below_N**2).sum())
    rate, (least, most) = _rate(above_N, below_N), bounds
    share = min((rate - least) / (most - least), 1.0)
    _, low, high, _ = share_estimate(share * counted, counted, level)
    low, high = (least + (most - least) * end for end in (low, high))
    return Estimate(rate, low, high, len(below_N))
