"""The CD index (Funk & Owen-Smith 2017) and its variants over large citation graphs.

In the window (t, t + w] after a focal paper of time t, n_i papers cite it and none of its
references, n_j cite both, and n_k cite only its references. A citer must be strictly later than the
focal paper; at t + w it still counts. References count whatever their own time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from tokengym.envs.core.errors import DataError
from tokengym.rewards.arrays import Flags, Floats, Ints

_FILES = ("times", "order", "starts", "cited", "citer_starts", "citers")
_CHUNK = 2**18
BUCKET_PAPERS = 1_000_000
"""Papers whose citations are sorted at a time, some 40 bytes each, when a graph is made on disk."""
BLOCK_PAIRS = 4_000_000
"""Pairs of a reference and its citer that one block looks at: about 100 MB."""


class CitationCounts(NamedTuple):
    """Citers of focal papers by kind, one entry per focal paper.

    Attributes:
        n_i: cite the focal paper and none of its references.
        n_j: cite both.
        n_k: cite only its references.
        n_l: cite the focal paper and at least `l` of its references (`l` as asked; 1 gives n_j).
        impact: all that cite the focal paper up to t + w, those not later than it included.
    """

    n_i: Ints
    n_j: Ints
    n_k: Ints
    n_l: Ints
    impact: Ints

    @property
    def citers(self) -> Ints:
        """Papers that cite the focal paper within the window: n_i + n_j."""
        return self.n_i + self.n_j

    def cd(self) -> Floats:
        """CD = (n_i - n_j) / (n_i + n_j + n_k), in [-1, 1]; NaN where all are 0."""
        return _ratio(self.n_i - self.n_j, self.n_i + self.n_j + self.n_k)

    def mcd(self) -> Floats:
        """MCD = CD · impact: direction times use, as in `cdindex`; NaN where CD is."""
        return self.cd() * self.impact

    def di_l(self) -> Floats:
        """DI_l of Bornmann et al. (2020): n_j counts only citers of at least `l` references."""
        return _ratio(self.n_i - self.n_l, self.n_i + self.n_l + self.n_k)


@dataclass(frozen=True, eq=False)
class CitationGraph:
    """A citation graph in chronological order, as compressed rows in both directions.

    Papers are numbered 0..n-1 by the caller; inside they are kept in order of time, so that the
    citers of any window are one contiguous range of rows. Arrays may be memory-mapped (`open`).

    Attributes:
        times: time of each paper in sorted order, shape (n,), any integer unit.
        order: the caller's number of each paper in sorted order, shape (n,).
        starts: row pointers of `cited`, shape (n + 1,).
        cited: references of each paper, as sorted positions, shape (m,).
        citer_starts: row pointers of `citers`, shape (n + 1,).
        citers: who cites each paper, as ascending sorted positions, shape (m,).
    """

    times: Ints
    order: Ints
    starts: Ints
    cited: npt.NDArray[np.int32]
    citer_starts: Ints
    citers: npt.NDArray[np.int32]

    @classmethod
    def from_edges(cls, times: npt.ArrayLike, citing: npt.ArrayLike, cited: npt.ArrayLike) -> Self:
        """Build the graph of `len(times)` papers; repeated citations count once.

        Args:
            times: publication time of each paper, integers, shape (n,).
            citing: number of the citing paper of each citation, shape (m,).
            cited: number of the paper it cites, shape (m,).

        Raises:
            DataError: if shapes or dtypes are wrong, or a number is no paper's.
        """
        when = _integers(times, "times")
        n = len(when)
        source, target = _papers(citing, "citing", n), _papers(cited, "cited", n)
        if source.shape != target.shape:
            raise DataError(
                f"citing and cited must be equally long, got {source.shape} and {target.shape}"
            )
        order, position = _sort_papers(when)
        other = source != target
        keys = sort_distinct(position[source[other]] * n + position[target[other]])
        rows, columns = keys // n, keys % n
        return cls(
            when[order],
            order,
            offsets(np.bincount(rows, minlength=n)),
            columns.astype(np.int32),
            offsets(np.bincount(columns, minlength=n)),
            rows[np.argsort(columns, kind="stable")].astype(np.int32),
        )

    @classmethod
    def open(cls, folder: Path | str) -> Self:
        """Map a saved graph into memory without reading it.

        Raises:
            DataError: if the folder holds no saved graph.
        """
        path = Path(folder)
        try:
            arrays = {name: np.load(path / f"{name}.npy", mmap_mode="r") for name in _FILES}
        except OSError as error:
            raise DataError(f"{path} holds no saved citation graph: {error}") from error
        return cls(**arrays)

    def __len__(self) -> int:
        """Return how many papers there are."""
        return len(self.times)

    def counts(
        self,
        focal: npt.ArrayLike | None = None,
        *,
        window: int = 5,
        l: int = 5,  # noqa: E741 - the literature's name
        block_pairs: int = BLOCK_PAIRS,
    ) -> CitationCounts:
        """Count citers by kind for the focal papers.

        Cost is the sum over focal papers and their references of the windowed citers of each; work
        goes in blocks of about `block_pairs` such pairs, which bounds memory.

        Args:
            focal: numbers of the focal papers, shape (f,); all papers if `None`.
            window: how long after publication citers count, in units of `times`, >= 0.
            l: least shared references for `n_l`, >= 1.
            block_pairs: size of a block, >= 1.

        Returns:
            counts in the order of `focal`, each of shape (f,).

        Raises:
            DataError: if a number is no paper's, or `window` or `l` is out of range.
        """
        if window < 0 or l < 1 or block_pairs < 1:
            raise DataError(
                "window must be >= 0, l and block_pairs >= 1, got "
                f"window={window}, l={l}, block_pairs={block_pairs}"
            )
        every = np.arange(len(self)) if focal is None else focal
        numbers = _papers(every, "focal", len(self))
        place = np.empty(len(self), dtype=np.int64)
        place[self.order] = np.arange(len(self))
        row_order = np.argsort(place[numbers], kind="stable")
        positions = place[numbers][row_order]
        blocks = self._blocks(positions, block_pairs)
        results = [_count_block(self, block, window, l) for block in blocks]
        out = np.zeros((5, len(positions)), dtype=np.int64)
        if results:
            out[:, row_order] = np.concatenate(results, axis=1)
        return CitationCounts(*out)

    def _blocks(self, positions: Ints, block_pairs: int) -> Iterator[Ints]:
        """Split sorted focal positions into runs of one time and a bounded number of pairs."""
        indegree = np.diff(self.citer_starts)
        for chunk in np.split(positions, range(_CHUNK, len(positions), _CHUNK)):
            references, row_starts = _take(self.starts, self.cited, chunk)
            seen = offsets(indegree[references])[row_starts[1:]]
            key = np.stack([self.times[chunk], seen // block_pairs])
            cuts = np.flatnonzero((key[:, 1:] != key[:, :-1]).any(axis=0)) + 1
            yield from (block for block in np.split(chunk, cuts) if len(block))


def build_on_disk(
    folder: Path | str,
    times: npt.ArrayLike,
    chunks: Iterable[tuple[Ints, Ints]],
    *,
    bucket_papers: int = BUCKET_PAPERS,
) -> CitationGraph:
    """Build a graph larger than memory in `folder`, and return it memory-mapped.

    It is the graph that `CitationGraph.from_edges` would build. Memory holds a few numbers a paper,
    one chunk, and the citations of one bucket of papers; the others wait in files.

    Args:
        folder: for the arrays; created if necessary. `CitationGraph.open` finds them there later.
        times: publication time of each paper, integers, shape (n,).
        chunks: the citations as numbers of citing and of cited papers, from 0 to n - 1.
        bucket_papers: papers of a bucket, neighbours in time, >= 1.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    when = np.asarray(times, dtype=np.int64)
    order, position = _sort_papers(when)
    np.save(path / "times.npy", when[order])
    np.save(path / "order.npy", order)
    papers = len(when)
    with TemporaryDirectory(dir=path) as scratch:
        citing, cited = Path(scratch, "citing"), Path(scratch, "cited")
        for source, target in chunks:
            row, column = position[source], position[target]
            other = row != column  # a paper that cites itself does not count
            _scatter(citing, (row * papers + column)[other], bucket_papers * papers)
        for keys, turned, pointers, columns in (
            (citing, cited, "starts", "cited"),
            (cited, None, "citer_starts", "citers"),
        ):
            lengths = np.zeros(papers, dtype=np.int64)
            buckets = sorted(keys.glob("*"))
            for bucket in buckets:
                row, column = np.divmod(sort_distinct(np.fromfile(bucket, np.int64)), papers)
                lengths[row[0] : row[-1] + 1] = np.bincount(row - row[0])
                if turned is not None:
                    _scatter(turned, column * papers + row, bucket_papers * papers)
                column.astype(np.int32).tofile(bucket)
            starts = offsets(lengths)
            np.save(path / f"{pointers}.npy", starts)
            shape, at = (int(starts[-1]),), 0
            out = open_memmap(path / f"{columns}.npy", mode="w+", dtype=np.int32, shape=shape)
            for bucket in buckets:
                some = np.fromfile(bucket, np.int32)
                out[at : at + len(some)] = some
                at += len(some)
            out.flush()
    return CitationGraph.open(path)


def _scatter(folder: Path, keys: Ints, span: int) -> None:
    """Append keys to the files of their buckets; each bucket covers `span` values of a key."""
    folder.mkdir(exist_ok=True)
    keys = np.sort(keys)
    numbers, begins = np.unique(keys // span, return_index=True)
    for number, some in zip(numbers.tolist(), np.split(keys, begins)[1:], strict=True):
        with (folder / f"{number:06d}").open("ab") as file:
            file.write(some.data)


def _sort_papers(times: Ints) -> tuple[Ints, Ints]:
    """Return the number of each paper in order of time, and the place of each number there."""
    order = np.argsort(times, kind="stable")
    position = np.empty(len(times), dtype=np.int64)
    position[order] = np.arange(len(times))
    return order, position


def _count_block(graph: CitationGraph, focal: Ints, window: int, least: int) -> Ints:
    """Count the citers of focal papers of one time; rows as in `CitationCounts`."""
    from scipy import sparse

    time = int(graph.times[focal[0]])
    first = int(np.searchsorted(graph.times, time, side="right"))
    end = int(np.searchsorted(graph.times, time + window, side="right"))
    citers, citer_starts = _take(graph.citer_starts, graph.citers, focal)
    impact = np.diff(offsets(citers < end)[citer_starts])
    if end == first:
        none = np.zeros_like(impact)
        return np.stack([none, none, none, none, impact])
    direct = _window(citers, citer_starts, first, end)
    references, row_starts = _take(graph.starts, graph.cited, focal)
    distinct, column = np.unique(references.astype(np.int64), return_inverse=True)
    reference_rows = sparse.csr_array(
        (np.ones(len(column), dtype=np.int32), column, row_starts), (len(focal), len(distinct))
    )
    shared = reference_rows @ _window(
        *_take(graph.citer_starts, graph.citers, distinct), first, end
    )
    both = direct.multiply(shared).tocsr()
    both_row = np.repeat(np.arange(len(focal)), np.diff(both.indptr))
    n_j = np.diff(both.indptr)
    n_l = np.bincount(both_row[both.data >= least], minlength=len(focal))
    n_i, n_k = np.diff(direct.indptr) - n_j, np.diff(shared.indptr) - n_j
    return np.stack([n_i, n_j, n_k, n_l, impact]).astype(np.int64)


def _window(citers: npt.NDArray[np.int32], row_starts: Ints, first: int, end: int) -> Any:
    """Citers `first` to `end` of some papers as sparse rows of ones."""
    from scipy import sparse

    inside = (citers >= first) & (citers < end)
    inside_starts = offsets(inside)[row_starts]
    indices = citers[inside] - first
    ones = np.ones(len(indices), dtype=np.int32)
    return sparse.csr_array((ones, indices, inside_starts), (len(row_starts) - 1, end - first))


def _take(
    starts: Ints, columns: npt.NDArray[np.int32], rows: Ints
) -> tuple[npt.NDArray[np.int32], Ints]:
    """Entries of some rows one after another, and where each row begins."""
    lengths = starts[rows + 1] - starts[rows]
    row_starts = offsets(lengths)
    shift = np.repeat(starts[rows] - row_starts[:-1], lengths)
    return columns[np.arange(row_starts[-1]) + shift], row_starts


def _ratio(numerator: Ints, denominator: Ints) -> Floats:
    out = np.full(numerator.shape, np.nan)
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def offsets(counts: npt.NDArray[Any]) -> Ints:
    """Return where each of consecutive runs of these lengths begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def row_blocks(starts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with at most `most` entries each, or one row."""
    first = 0
    while first < len(starts) - 1:
        end = int(np.searchsorted(starts, starts[first] + most, side="right"))
        last = max(end - 1, first + 1)
        yield first, last
        first = last


def sort_distinct(values: Ints) -> Ints:
    """Return the distinct values, ascending; `np.unique` would hash them first, which is slow."""
    ascending = np.sort(values)
    return ascending[np.diff(ascending, prepend=-1) > 0]


def find_sorted(values: Ints, wanted: Ints) -> tuple[Ints, Flags]:
    """Return the position of each of `wanted` among ascending values, and whether it is there."""
    if not len(values):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return place, values[place] == wanted


def _papers(values: npt.ArrayLike, what: str, count: int) -> Ints:
    numbers = _integers(values, what)
    if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
        raise DataError(
            f"{what} numbers papers from 0 to {count - 1}, got {numbers.min()} to {numbers.max()}"
        )
    return numbers


def _integers(values: npt.ArrayLike, what: str) -> Ints:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(
            f"{what} must be one-dimensional integers, got shape {array.shape} and {array.dtype}"
        )
    return array.astype(np.int64)
