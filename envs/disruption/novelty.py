"""Novelty and conventionality of reference lists (Uzzi et al. 2013).

Every pair of a paper's references is a pair of venues. Its z-score compares how often the pair
occurs with how often it would if venues were shuffled among the references of the same cited year.
z < 0 is atypical.

Pairs are counted in blocks of papers, for as many venue pairs at a time as one table holds; slots
and z-scores wait in files. So memory does not grow with the number of pairs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.array_files import (
    Column,
    NewArray,
    ScratchArray,
    find_sorted,
    group_runs,
    scratch_arrays,
    slices_of,
    sort_distinct,
)
from tokengym.envs.disruption.citations import furthest_row, offsets, row_blocks
from tokengym.rewards.arrays import Floats, Ints

Find = Callable[[Ints], npt.NDArray[np.integer]]
"""Returns the number of each of some pairs, a last number for those that were not observed."""

_BLOCK = 1 << 21
"""Pairs of references, or slots, held at once (some 50 bytes each), if no paper has more."""
_TABLE = 1 << 23
"""Venue pairs counted in one table (some 50 bytes each), if no venue has more."""
_MOST_CELLS = 32
"""Cells a pair from which on tables cost more than sorting what occurs."""
_FILTER = 1 << 26
"""Hashes of pairs that are told apart before they are sorted, a byte each."""


@dataclass(frozen=True, eq=False)
class ReferenceSlots:
    """The reference lists of one cohort of papers (usually one publication year), slot by slot.

    Attributes:
        starts: slot `starts[p]` to `starts[p + 1]` belong to paper p; shape (n + 1,).
        venue: number of the cited paper's venue, any integer, shape (s,).
        year: year of the cited paper, shape (s,).
    """

    starts: Ints
    venue: Column
    year: Column

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


def shuffled_scores(
    slots: ReferenceSlots, *, seed: int, shuffles: int = 20, folder: Path | None = None
) -> Floats:
    """Score papers against random assignments; shuffle k depends on `seed` and k alone.

    Args:
        slots: the cohort.
        seed: entropy of the shuffles, >= 0.
        shuffles: how many, >= 2. The z-score's error falls as 1/√shuffles.
        folder: where slots and scores wait: 4 bytes a slot and shuffle, 50 a slot, 8 a pair.

    Returns:
        as `score_papers` does.

    Raises:
        DataError: if `shuffles` is less than 2 or `seed` negative.
    """
    if shuffles < 2 or seed < 0:
        raise DataError(f"shuffles must be >= 2 and seed >= 0, got {shuffles} and {seed}")
    with scratch_arrays(folder) as new:
        return score_papers(slots, _shuffle(slots, seed, shuffles, new), folder)


def score_papers(
    slots: ReferenceSlots, assignments: Iterable[Column], folder: Path | None = None
) -> Floats:
    """Score papers by their pairs' z: (observed - mean) / deviation over the assignments.

    Args:
        slots: the cohort, with the observed venues.
        assignments: venues of all slots, each of shape (s,); read before the next is asked for.
        folder: where slots and scores wait; the system's for temporary files if `None`.

    Returns:
        novelty and conventionality: 10th percentile and median over a paper's pairs, those left
        out that the assignments never vary, shape (n, 2); NaN for a paper without another pair.
    """
    with scratch_arrays(folder) as new:
        cohort = _Cohort(slots, new)
        for venue in chain([slots.venue], assignments):
            cohort.add(venue)
        cohort.score_pairs()
        return cohort.percentiles()


class _Cohort:
    """Assignments of venues to the slots of papers, and the pairs of slots.

    Venues are numbered by how often they are cited, so that the frequent pairs are neighbours, and
    sorted within a paper, so that a slot and those after it are its pairs (a, b) with a <= b.
    """

    def __init__(self, slots: ReferenceSlots, new: NewArray) -> None:
        self.starts = slots.starts
        self.names, cited = _tally(slots.venue)
        self.number = np.empty(len(cited), dtype=np.int32)
        self.number[np.argsort(-cited, kind="stable")] = np.arange(len(cited))
        self.columns = new(np.int32)  # one assignment after the other
        self.z = new(np.float64)  # of the observed pairs: by range of venues, then by slot
        self.ranges: list[tuple[int, int]] = []  # first venue of each, and where its z begin
        self.assigned = -1

        lengths = np.diff(slots.starts)
        pairs = lengths * (lengths - 1) // 2
        self.blocks = list(row_blocks(offsets(pairs + lengths), _BLOCK))

    def add(self, venue: Column) -> None:
        """Keep an assignment; the first one is what was observed."""
        self.assigned += 1
        for first, last in self.blocks:
            place = np.searchsorted(self.names, venue[self.starts[first] : self.starts[last]])
            lengths = np.diff(self.starts[first : last + 1])
            paper = np.repeat(np.arange(last - first) * len(self.names), lengths)
            keys = paper + self.number[place]
            keys.sort()
            self.columns.append(keys - paper)

    def score_pairs(self) -> None:
        """Append the z-scores of the observed pairs, the venues a in ranges that a table holds."""
        venues = len(self.names)
        cells = offsets(np.arange(venues, 0, -1))  # venue a has pairs with a, a + 1, ...
        held = np.zeros(venues)
        for block in self.blocks:
            venue, partners = self._read(0, block)
            held += np.bincount(venue, weights=partners, minlength=venues)
        pairs = offsets(held)
        first = 0
        while first < venues:
            self.ranges.append((first, len(self.z)))
            last = furthest_row(cells, first, _TABLE)
            size = int(cells[last] - cells[first])
            if size > min(_TABLE, _MOST_CELLS * (pairs[last] - pairs[first])):
                last, size = furthest_row(pairs, first, _TABLE), 0
            self._score_range(first, last, cells, size)
            first = last

    def _score_range(self, first: int, last: int, cells: Ints, size: int) -> None:
        """Append the z-scores of the pairs of some venues.

        Args:
            first: the first venue.
            last: the venue after the last.
            cells: the cell of each venue's pair with itself.
            size: how many cells these venues have; 0 if their pairs are too rare for that.
        """
        shift = cells[:-1] - np.arange(len(cells) - 1) - cells[first]
        read = partial(self._pairs, first=first, last=last, shift=shift)
        known, find = _index_cells(read(0), size) if size else _index_rare(read(0))

        def count(column: int) -> Ints:
            table = np.zeros(known + 1, dtype=np.int64)
            for cell in read(column):
                np.add.at(table, find(cell), 1)
            return table[:-1]

        observed = count(0)
        total, squares = np.zeros((2, known), dtype=np.int64)
        for column in range(1, self.assigned + 1):
            more = count(column) - observed
            total += more
            squares += more * more
        spread = self.assigned * squares - total * total  # exact: all are integers
        z = np.full(known, np.nan)
        np.divide(-total, np.sqrt(spread.astype(float)), out=z, where=spread > 0)
        for cell in read(0):
            self.z.append(z[find(cell)])

    def percentiles(self) -> Floats:
        """Return the scores of all papers."""
        out = np.full((len(self.starts) - 1, 2), np.nan)
        firsts, begins = np.array(self.ranges, dtype=np.int64).reshape(-1, 2).T
        range_of = np.searchsorted(firsts, np.arange(len(self.names)), side="right") - 1
        for first, last in self.blocks:
            venue, partners = self._read(0, (first, last))
            order = np.argsort(range_of[venue], kind="stable")
            held = np.bincount(range_of[venue], weights=partners, minlength=len(begins))
            ends = begins + held.astype(np.int64)
            z = self.z.read_runs([slice(a, b) for a, b in zip(begins, ends, strict=True)])
            begins = ends
            # From the order of ranges into that of papers.
            pair, own = offsets(partners), partners[order]
            place = np.repeat(pair[order] - offsets(own)[:-1], own) + np.arange(len(z))
            scores = np.empty_like(z)
            scores[place] = z
            known = ~np.isnan(scores)
            papers = pair[self.starts[first : last + 1] - self.starts[first]]
            starts = offsets(known)[papers]
            scores, counts = scores[known], np.diff(starts)
            for count in np.unique(counts[counts > 0]):
                rows = np.flatnonzero(counts == count)
                of_paper = scores[starts[rows][:, None] + np.arange(count)]
                out[first + rows] = np.percentile(of_paper, (10, 50), axis=1).T
        return out

    def _read(self, column: int, block: tuple[int, int]) -> tuple[Ints, Ints]:
        """Return the venues of a block's slots and with how many later slots each is paired."""
        first, last = block
        begin, end = self.starts[first], self.starts[last]
        before = column * self.starts[-1]
        last_slot = (
            np.repeat(self.starts[first + 1 : last + 1], np.diff(self.starts[first : last + 1])) - 1
        )
        return self.columns[before + begin : before + end], last_slot - np.arange(begin, end)

    def _pairs(self, column: int, first: int, last: int, shift: Ints) -> Iterator[Ints]:
        """Yield the cell, `shift[a] + b`, of every pair of venues with a in a range."""
        for block in self.blocks:
            venue, partners = self._read(column, block)
            left = np.flatnonzero((venue >= first) & (venue < last))
            pair = offsets(partners[left])
            for a, b in row_blocks(pair, _BLOCK):
                some, own = left[a:b], partners[left[a:b]]
                right = np.repeat(some + 1 - (pair[a:b] - pair[a]), own) + np.arange(
                    pair[b] - pair[a]
                )
                yield np.repeat(shift[venue[some]], own) + venue[right]


def _index_cells(pairs: Iterable[Ints], size: int) -> tuple[int, Find]:
    """Number the pairs that occur, in a table with a cell for each that could."""
    index = np.zeros(size, dtype=np.int32)
    for cell in pairs:
        index[cell] = 1
    occurring = np.flatnonzero(index)
    index[:] = len(occurring)
    index[occurring] = np.arange(len(occurring))
    return len(occurring), index.__getitem__


def _index_rare(pairs: Iterable[Ints]) -> tuple[int, Find]:
    """Number the pairs that occur by sorting them, where most cells would be empty."""
    occurring = sort_distinct(np.concatenate([np.zeros(0, dtype=np.int64), *pairs]))
    seen = np.zeros(_FILTER, dtype=np.bool_)
    seen[occurring % _FILTER] = True

    def find(cell: Ints) -> Ints:
        number = np.full(len(cell), len(occurring))
        some = np.flatnonzero(seen[cell % _FILTER])  # few others were ever observed
        place, found = find_sorted(occurring, cell[some])
        number[some[found]] = place[found]
        return number

    return len(occurring), find


def _tally(column: Column) -> tuple[Ints, Ints]:
    """Return the distinct values of a column, ascending, and how often each occurs."""
    values, counts = np.zeros((2, 0), dtype=np.int64)
    for some in slices_of(0, len(column), _BLOCK):
        own, more = np.unique(column[some], return_counts=True)
        values, place = np.unique(np.concatenate([values, own]), return_inverse=True)
        counts = np.bincount(place, weights=np.concatenate([counts, more])).astype(np.int64)
    return values, counts


def _shuffle(
    slots: ReferenceSlots, seed: int, shuffles: int, new: NewArray
) -> Iterator[ScratchArray]:
    """Yield shuffles of the venues within each cited year, which order random numbers there."""
    years, counts = _tally(slots.year)
    ends = offsets(counts)
    year, by_year, drawn = new(np.min_scalar_type(len(years))), new(np.int64), new(np.float64)
    dealt, shuffled = new(np.int64), new(np.int64)
    chunks = slices_of(0, len(slots.year), _BLOCK)
    at = ends[:-1]
    for chunk in chunks:
        year.append(np.searchsorted(years, slots.year[chunk]))
        order, runs, at = group_runs(at, year[chunk])
        by_year.write_runs(runs, slots.venue[chunk][order])
    for k in range(shuffles):
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, k])))
        at = ends[:-1]
        for chunk in chunks:
            order, runs, at = group_runs(at, year[chunk])
            drawn.write_runs(runs, rng.random(len(order))[order])
        for begin, end in pairwise(ends.tolist()):
            _order(by_year, drawn, dealt, begin, end)
        at = ends[:-1]
        for chunk in chunks:
            order, runs, at = group_runs(at, year[chunk])
            venue = np.empty(len(order), dtype=np.int64)
            venue[order] = dealt.read_runs(runs)
            shuffled[chunk] = venue
        yield shuffled


def _order(
    values: ScratchArray, keys: ScratchArray, out: ScratchArray, begin: int, end: int
) -> None:
    """Write values in the order of keys in [0, 1), of which a part is sorted at a time."""
    chunks = slices_of(begin, end, _BLOCK)
    for part in range(len(chunks)):
        own_keys, own_values = [], []
        for chunk in chunks:
            key = keys[chunk]
            own = np.minimum((key * len(chunks)).astype(np.int64), len(chunks) - 1) == part
            own_keys.append(key[own])
            own_values.append(values[chunk][own])
        order = np.argsort(np.concatenate(own_keys), kind="stable")
        out[begin : begin + len(order)] = np.concatenate(own_values)[order]
        begin += len(order)
