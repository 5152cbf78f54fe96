"""Novelty and conventionality of reference lists (Uzzi et al. 2013).

Every pair of a paper's references is a pair of venues. Its z-score compares how often the pair
occurs among the papers given with what it would be if venues were dealt anew to the reference
slots of the same cited year. z < 0 is atypical.
"""

import math
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError

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
        """Refuse slots that do not fit together."""
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
        """Novelty and conventionality: 10th percentile and median over a paper's pairs.

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


def exact_scores(slots: ReferenceSlots, *, most_assignments: int = 100_000) -> PairScores:
    """Score the pairs against every distinct assignment of venues to slots of one cited year.

    Raises:
        DataError: if there are more than `most_assignments` of them.
    """
    groups = _groups(slots.year)
    number = math.prod(_arrangements(slots.venue[group]) for group in groups)
    if number > most_assignments:
        raise DataError(
            f"{number} assignments are more than most_assignments={most_assignments}; "
            "use shuffled_scores"
        )
    pairs = _Pairs(slots)
    return pairs.scores(pairs.tally(_assignments(slots.venue, groups, 0)))


def shuffled_scores(
    slots: ReferenceSlots, *, seed: int, shuffles: int = 20, executor: Executor | None = None
) -> PairScores:
    """Score the pairs against random assignments; shuffle k depends on `seed` and k alone.

    Args:
        slots: the cohort.
        seed: entropy of the shuffles, >= 0.
        shuffles: how many, >= 2. The z-score's error falls as 1/√shuffles.
        executor: where to run them; here, one after another, if `None`. The values are the same.

    Raises:
        DataError: if `shuffles` is less than 2 or `seed` negative.
    """
    if shuffles < 2 or seed < 0:
        raise DataError(f"shuffles must be >= 2 and seed >= 0, got {shuffles} and {seed}")
    pairs = _Pairs(slots)
    if executor is None:
        return pairs.scores(pairs.tally(_shuffle(slots, seed, k) for k in range(shuffles)))
    futures = [executor.submit(_tally_shuffle, slots, seed, k) for k in range(shuffles)]
    tallies = np.array([future.result() for future in futures])
    return pairs.scores((shuffles, tallies[:, 0].sum(axis=0), tallies[:, 1].sum(axis=0)))


class _Pairs:
    """Pairs of slots of each paper, and the venue pairs they show."""

    def __init__(self, slots: ReferenceSlots) -> None:
        lengths = np.diff(slots.starts)
        per_paper = lengths * (lengths - 1) // 2
        self.starts = np.concatenate([[0], np.cumsum(per_paper)])
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
        """One number for the venue pair of each slot pair."""
        a, b = venue[self.left], venue[self.right]
        return np.minimum(a, b) * self.base + np.maximum(a, b)

    def count(self, venue: IntArray) -> IntArray:
        """How often each observed pair occurs when the slots hold `venue`."""
        codes = self._code(venue)
        if self.base * self.base <= _LARGEST_TABLE:
            return np.bincount(codes, minlength=self.base * self.base)[self.codes]
        codes.sort()
        end = np.searchsorted(codes, self.codes, side="right")
        return end - np.searchsorted(codes, self.codes, side="left")

    def tally(self, assignments: Iterator[IntArray]) -> tuple[int, IntArray, IntArray]:
        """Number of assignments, and sums of counts and of squared counts: exact integers."""
        number = 0
        total = np.zeros(len(self.codes), dtype=np.int64)
        squares = np.zeros(len(self.codes), dtype=np.int64)
        for venue in assignments:
            count = self.count(venue)
            number += 1
            total += count
            squares += count * count
        return number, total, squares

    def scores(self, tally: tuple[int, IntArray, IntArray]) -> PairScores:
        """Turn a tally into z-scores with the population deviation."""
        number, total, squares = tally
        spread = number * squares - total * total
        z = np.full(len(self.codes), np.nan)
        np.divide(
            number * self.observed - total, np.sqrt(spread.astype(float)), out=z, where=spread > 0
        )
        return PairScores(
            self.codes // self.base,
            self.codes % self.base,
            self.observed,
            z,
            self.starts,
            self.pair,
        )


def _groups(year: IntArray) -> list[IntArray]:
    """Slots of each cited year."""
    order = np.argsort(year, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(year[order])) + 1)


def _arrangements(venues: IntArray) -> int:
    """How many distinct orders a multiset of venues has."""
    repeats = np.unique(venues, return_counts=True)[1]
    return math.factorial(len(venues)) // math.prod(math.factorial(int(r)) for r in repeats)


def _assignments(venue: IntArray, groups: list[IntArray], depth: int) -> Iterator[IntArray]:
    """Every distinct assignment; the array yielded is reused."""
    if depth == 0:
        venue = venue.copy()
    if depth == len(groups):
        yield venue
        return
    group = groups[depth]
    left = Counter(int(v) for v in venue[group])

    def deal(slot: int) -> Iterator[IntArray]:
        if slot == len(group):
            yield from _assignments(venue, groups, depth + 1)
            return
        for choice in left:
            if left[choice]:
                left[choice] -= 1
                venue[group[slot]] = choice
                yield from deal(slot + 1)
                left[choice] += 1

    yield from deal(0)


def _shuffle(slots: ReferenceSlots, seed: int, k: int) -> IntArray:
    """Deal the venues anew within each cited year."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k])))
    by_year = np.argsort(slots.year, kind="stable")
    dealt = np.lexsort((rng.random(len(slots.year)), slots.year))
    venue = np.empty_like(slots.venue)
    venue[by_year] = slots.venue[dealt]
    return venue


def _tally_shuffle(slots: ReferenceSlots, seed: int, k: int) -> tuple[IntArray, IntArray]:
    _, total, squares = _Pairs(slots).tally(iter([_shuffle(slots, seed, k)]))
    return total, squares
