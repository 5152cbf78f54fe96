"""Novelty and conventionality of reference lists (Uzzi et al. 2013).

Every pair of a paper's references is a pair of venues. Its z-score compares how often the pair
occurs with how often it would if venues were shuffled among the references of the same cited year.
z < 0 is atypical.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import offsets

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_LARGEST_TABLE = 2**25
"""Venue pairs counted in one table (8 bytes each); beyond it they are sorted."""


@dataclass(frozen=True, eq=False)
class ReferenceSlots:
    """The reference lists of one cohort of papers (usually one publication year), slot by slot.

    Attributes:
        starts: slot `starts[p]` to `starts[p + 1]` belong to paper p; shape (n + 1,).
        venue: venue number of the cited paper, >= 0, shape (s,).
        year: year of the cited paper, shape (s,).
    """

    starts: IntArray
    venue: IntArray
    year: IntArray

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        starts, venue, year = self.starts, self.venue, self.year
        if venue.shape != year.shape or venue.ndim != 1 or starts.ndim != 1 or not len(starts):
            raise DataError(
                f"slots need starts (n + 1,), venue (s,) and year (s,), got {starts.shape}, "
                f"{venue.shape}, {year.shape}"
            )
        if starts[0] != 0 or starts[-1] != len(venue) or (np.diff(starts) < 0).any():
            raise DataError(f"starts must rise from 0 to {len(venue)}, got {starts}")
        if len(venue) and venue.min() < 0:
            raise DataError(f"venue numbers must be >= 0, got {venue.min()}")


@dataclass(frozen=True, eq=False)
class PairScores:
    """z-scores of the venue pairs of a cohort.

    Attributes:
        first: smaller venue number of each pair that occurs, shape (q,).
        second: larger venue number, shape (q,).
        observed: how often the pair occurs, shape (q,).
        z: (observed - mean) / deviation over the assignments, shape (q,); NaN if they never vary.
        starts: pairs of paper p are `pair[starts[p]:starts[p + 1]]`, shape (n + 1,).
        pair: index into the q pairs for every pair of references of every paper, shape (r,).
    """

    first: IntArray
    second: IntArray
    observed: IntArray
    z: FloatArray
    starts: IntArray
    pair: IntArray

    def percentiles(self) -> FloatArray:
        """Return novelty and conventionality: 10th percentile and median over a paper's pairs.

        Returns:
            shape (n, 2); NaN for a paper without a pair of defined z.
        """
        out = np.full((len(self.starts) - 1, 2), np.nan)
        for paper, (begin, end) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            scores = self.z[self.pair[begin:end]]
            scores = scores[~np.isnan(scores)]
            if len(scores):
                out[paper] = np.percentile(scores, (10, 50))
        return out


def shuffled_scores(slots: ReferenceSlots, *, seed: int, shuffles: int = 20) -> PairScores:
    """Score the pairs against random assignments; shuffle k depends on `seed` and k alone.

    Args:
        slots: the cohort.
        seed: entropy of the shuffles, >= 0.
        shuffles: how many, >= 2. The z-score's error falls as 1/√shuffles.

    Raises:
        DataError: if `shuffles` is less than 2 or `seed` negative.
    """
    if shuffles < 2 or seed < 0:
        raise DataError(f"shuffles must be >= 2 and seed >= 0, got {shuffles} and {seed}")
    return score_pairs(slots, (_shuffle(slots, seed, k) for k in range(shuffles)))


def score_pairs(slots: ReferenceSlots, assignments: Iterable[IntArray]) -> PairScores:
    """Score the pairs against given assignments of venues to the slots.

    Args:
        slots: the cohort, with the observed venues.
        assignments: venues of all slots, each of shape (s,).
    """
    pairs = _Pairs(slots)
    number = 0
    total, squares = np.zeros((2, len(pairs.codes)), dtype=np.int64)
    for venue in assignments:
        count = pairs.count(venue)
        number += 1
        total += count
        squares += count * count
    spread = number * squares - total * total  # exact: all are integers
    z = np.full(len(pairs.codes), np.nan)
    deviation = np.sqrt(spread.astype(float))
    np.divide(number * pairs.observed - total, deviation, out=z, where=spread > 0)
    first, second = np.divmod(pairs.codes, pairs.base)
    return PairScores(first, second, pairs.observed, z, pairs.starts, pairs.pair)


class _Pairs:
    """Pairs of slots of each paper, and their venue pairs."""

    def __init__(self, slots: ReferenceSlots) -> None:
        lengths = np.diff(slots.starts)
        per_paper = lengths * (lengths - 1) // 2
        self.starts = offsets(per_paper)
        self.left = np.empty(self.starts[-1], dtype=np.int64)
        self.right = np.empty(self.starts[-1], dtype=np.int64)
        for length in np.unique(lengths[lengths > 1]):
            a, b = np.triu_indices(length, 1)
            papers = np.flatnonzero(lengths == length)
            place = self.starts[papers][:, None] + np.arange(len(a))
            self.left[place] = slots.starts[papers][:, None] + a
            self.right[place] = slots.starts[papers][:, None] + b
        self.base = int(slots.venue.max()) + 1 if len(slots.venue) else 1
        self.codes, self.pair, self.observed = np.unique(
            self._code(slots.venue), return_inverse=True, return_counts=True
        )

    def _code(self, venue: IntArray) -> IntArray:
        """Return one number for the venue pair of each slot pair."""
        a, b = venue[self.left], venue[self.right]
        return np.minimum(a, b) * self.base + np.maximum(a, b)

    def count(self, venue: IntArray) -> IntArray:
        """Count how often each observed pair occurs when the slots hold `venue`."""
        codes = self._code(venue)
        if self.base * self.base <= _LARGEST_TABLE:
            return np.bincount(codes, minlength=self.base * self.base)[self.codes]
        codes.sort()
        end = np.searchsorted(codes, self.codes, side="right")
        return end - np.searchsorted(codes, self.codes, side="left")


def _shuffle(slots: ReferenceSlots, seed: int, k: int) -> IntArray:
    """Shuffle the venues within each cited year."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k])))
    by_year = np.argsort(slots.year, kind="stable")
    shuffled = np.lexsort((rng.random(len(slots.year)), slots.year))
    venue = np.empty_like(slots.venue)
    venue[by_year] = slots.venue[shuffled]
    return venue
