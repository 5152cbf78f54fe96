"""Novelty and conventionality of reference lists (Uzzi et al. 2013).

Every pair of a paper's references is a pair of venues. Its z-score compares how often the pair
occurs with how often it would if venues were shuffled among the references of the same cited year.
z < 0 is atypical.

Pairs are made in blocks of papers. Those of the most cited venues are counted in a table with a
cell for each, the others by number in a sorted list of those that occur; so memory grows with the
references and with the distinct pairs of venues, not with the pairs of references.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import find_sorted, offsets, row_blocks, sort_distinct
from tokengym.rewards.arrays import Floats, Ints

Venues = npt.NDArray[np.integer]
"""Numbers of venues, one a slot, shape (s,)."""

_BLOCK = 1 << 21
"""Pairs of references made at once (some 80 bytes each), if no paper has more."""
_TABLE_VENUES = 4096
"""Most cited venues whose pairs have a cell each: 8.4 million cells."""
_FILTER = 1 << 26
"""Hashes of pairs, a power of two, told apart before pairs are searched for, a byte each."""


@dataclass(frozen=True, eq=False)
class ReferenceSlots:
    """The reference lists of one cohort of papers (usually one publication year), slot by slot.

    Attributes:
        starts: slot `starts[p]` to `starts[p + 1]` belong to paper p; shape (n + 1,).
        venue: number of the cited paper's venue, any integer, shape (s,).
        year: year of the cited paper, shape (s,).
    """

    starts: Ints
    venue: Venues
    year: Ints

    def __post_init__(self) -> None:
        """Refuse arrays that do not fit together."""
        starts, slots = self.starts, len(self.venue)
        if starts.ndim != 1 or not len(starts) or len(self.year) != slots:
            raise DataError(
                f"slots need starts (n + 1,), venue (s,) and year (s,), got {starts.shape}, "
                f"{slots} venues and {len(self.year)} years"
            )
        if starts[0] != 0 or starts[-1] != slots or (np.diff(starts) < 0).any():
            raise DataError(f"starts must rise from 0 to {slots}, got {starts}")


def shuffled_scores(slots: ReferenceSlots, *, seed: int, shuffles: int = 20) -> Floats:
    """Score papers against random assignments; shuffle k depends on `seed` and k alone.

    Args:
        slots: the cohort.
        seed: entropy of the shuffles, >= 0.
        shuffles: how many, >= 2. The z-score's error falls as 1/√shuffles.

    Returns:
        as `score_papers` does.

    Raises:
        DataError: if `shuffles` is less than 2 or `seed` negative.
    """
    if shuffles < 2 or seed < 0:
        raise DataError(f"shuffles must be >= 2 and seed >= 0, got {shuffles} and {seed}")
    return score_papers(slots, _shuffle(slots, seed, shuffles))


def score_papers(slots: ReferenceSlots, assignments: Iterable[Venues]) -> Floats:
    """Score papers by their pairs' z: (observed - mean) / deviation over the assignments.

    Args:
        slots: the cohort, with the observed venues.
        assignments: venues of all slots, each of shape (s,).

    Returns:
        novelty and conventionality: 10th percentile and median over a paper's pairs, those left
        out that the assignments never vary, shape (n, 2); NaN for a paper without another pair.
    """
    cohort = _PairCounts(slots)
    observed = cohort.count(slots.venue)
    total, squares = np.zeros((2, len(observed)), dtype=np.int64)
    shuffles = 0
    for venue in assignments:
        more = cohort.count(venue) - observed
        total += more
        squares += np.square(more, dtype=np.int64)
        shuffles += 1
    squares *= shuffles
    squares -= total * total  # exact: all are integers
    varies = squares > 0
    z = np.full(len(observed), np.nan)
    z[varies] = -total[varies] / np.sqrt(squares[varies])
    del observed, total, squares, varies
    out = np.full((len(slots.starts) - 1, 2), np.nan)
    for first, pair_starts, cell in cohort.cells(slots.venue):
        scores = z[cell]
        known = ~np.isnan(scores)
        starts, scores = offsets(known)[pair_starts], scores[known]
        counts = np.diff(starts)
        for count in np.unique(counts[counts > 0]):
            rows = np.flatnonzero(counts == count)
            of_paper = scores[starts[rows][:, None] + np.arange(count)]
            out[first + rows] = np.percentile(of_paper, (10, 50), axis=1).T
    return out


class _PairCounts:
    """Cells for the pairs of venues, and how often assignments fill them.

    Venues are numbered by how often they are cited and sorted within a paper, so that a slot and
    those after it are its pairs (a, b) with a <= b, and those of frequent venues have b < `most`.
    """

    def __init__(self, slots: ReferenceSlots) -> None:
        self.starts = slots.starts
        self.names, cited = np.unique(slots.venue, return_counts=True)
        self.number = np.empty(len(cited), dtype=np.int32)
        self.number[np.argsort(-cited, kind="stable")] = np.arange(len(cited))
        lengths = np.diff(slots.starts)
        pairs = lengths * (lengths - 1) // 2
        self.blocks = list(row_blocks(offsets(pairs + lengths), _BLOCK))

        self.most = min(len(cited), _TABLE_VENUES)
        first = np.arange(self.most)
        self.shift = first * self.most - first * (first + 1) // 2  # cell of (a, b), less b
        self.table = self.most * (self.most + 1) // 2
        self.rare = np.zeros(0, dtype=np.int64)
        waiting: list[Ints] = []
        for _, _, a, b in self._pairs(slots.venue):
            waiting.append(sort_distinct((a * len(cited) + b)[b >= self.most]))
            if sum(map(len, waiting)) > _BLOCK + len(self.rare):
                self.rare, waiting = sort_distinct(np.concatenate([self.rare, *waiting])), []
        self.rare = sort_distinct(np.concatenate([self.rare, *waiting]))
        self.seen = np.zeros(_FILTER, dtype=np.bool_)
        self.seen[self.rare & _FILTER - 1] = True

    def count(self, venue: Venues) -> npt.NDArray[np.int32]:
        """Count each pair that occurs in the source; those that never do share the last cell."""
        counts = np.zeros(self.table + len(self.rare) + 1, dtype=np.int32)
        for _, _, a, b in self._pairs(venue):
            frequent = b < self.most
            np.add.at(counts, self.shift[a[frequent]] + b[frequent], 1)
            keys = (a * len(self.names) + b)[~frequent]
            keys = np.sort(keys[self.seen[keys & _FILTER - 1]])  # few others occur in the source
            place, found = find_sorted(self.rare, keys)
            np.add.at(counts, self.table + place[found], 1)
        return counts

    def cells(self, venue: Venues) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield, by block, its first paper, where the pairs of each begin, and their cells.

        The pairs must occur in the source.
        """
        for first, pair_starts, a, b in self._pairs(venue):
            rare = np.flatnonzero(b >= self.most)
            keys = a[rare] * len(self.names) + b[rare]
            cell = self.shift[np.minimum(a, self.most - 1)] + b
            order = np.argsort(keys)  # neighbours are found sooner
            cell[rare[order]] = self.table + np.searchsorted(self.rare, keys[order])
            yield first, pair_starts, cell

    def _pairs(self, venue: Venues) -> Iterator[tuple[int, Ints, Ints, Ints]]:
        """Yield, by block, its first paper, where the pairs of each begin, and their venues."""
        for first, last in self.blocks:
            begin, end = self.starts[first], self.starts[last]
            slots = self.starts[first : last + 1] - begin
            lengths = np.diff(slots)
            paper = np.repeat(np.arange(last - first) * len(self.names), lengths)
            ranked = paper + self.number[np.searchsorted(self.names, venue[begin:end])]
            ranked.sort()
            ranked -= paper
            slot = np.arange(end - begin)
            partners = np.repeat(slots[1:], lengths) - 1 - slot
            pair = offsets(partners)
            left = np.repeat(slot, partners)
            right = left + 1 + np.arange(pair[-1]) - np.repeat(pair[:-1], partners)
            yield first, pair[slots], ranked[left], ranked[right]


def _shuffle(slots: ReferenceSlots, seed: int, shuffles: int) -> Iterator[Venues]:
    """Yield shuffles of the venues within each cited year."""
    by_year = np.argsort(slots.year, kind="stable")
    cuts = np.flatnonzero(np.diff(slots.year[by_year])) + 1
    pools = np.split(slots.venue[by_year], cuts)
    for k in range(shuffles):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k])))
        dealt = np.empty_like(slots.venue)
        dealt[by_year] = np.concatenate([rng.permutation(pool) for pool in pools])
        yield dealt
