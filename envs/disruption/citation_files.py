"""Citation graphs larger than memory, built on disk from chunks of citations.

Memory holds a few numbers a paper and one chunk; citations lie in files from the start. The
result is the graph that `CitationGraph.from_edges` would build.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.citations import CitationGraph, offsets, row_blocks

IntArray = npt.NDArray[np.int64]
Chunks = Callable[[], Iterable[tuple[npt.ArrayLike, npt.ArrayLike]]]
"""Returns the citations as (citing, cited) chunks, the same ones at every call."""

BLOCK_CITATIONS = 20_000_000


def build_on_disk(
    folder: Path | str,
    times: npt.ArrayLike,
    chunks: Chunks,
    *,
    block_citations: int = BLOCK_CITATIONS,
) -> CitationGraph:
    """Build a graph in `folder` and return it memory-mapped.

    Args:
        folder: for the arrays; created if necessary. `CitationGraph.open` finds them there later.
        times: publication time of each paper, integers, shape (n,).
        chunks: called twice; each chunk holds numbers of citing and of cited papers.
        block_citations: most citations sorted at a time (about 40 bytes each), if no single
            paper has more.

    Raises:
        DataError: if a number is no paper's, or the two passes differ.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    when = np.asarray(times, dtype=np.int64)
    order = np.argsort(when, kind="stable")
    position = np.empty(len(when), dtype=np.int64)
    position[order] = np.arange(len(when))

    degrees = np.zeros(len(when), dtype=np.int64)
    for source, _ in _positions(chunks, position):
        degrees += np.bincount(source, minlength=len(when))
    raw_starts = offsets(degrees)
    raw_path = path / "unsorted.npy"
    raw = open_memmap(raw_path, mode="w+", dtype=np.int32, shape=(max(int(raw_starts[-1]), 1),))
    _fill(raw, raw_starts, _positions(chunks, position))

    row_lengths = np.zeros_like(degrees)
    end = 0
    for first, last in row_blocks(raw_starts, block_citations):
        rows, columns = _distinct(raw, raw_starts, first, last)
        row_lengths[first:last] = np.bincount(rows, minlength=last - first)
        # Dropping repeats only shrinks rows, so what is written here has been read already.
        raw[end : end + len(columns)] = columns
        end += len(columns)
    starts = offsets(row_lengths)
    cited = open_memmap(path / "cited.npy", mode="w+", dtype=np.int32, shape=(end,))
    for begin in range(0, end, block_citations):
        cited[begin : begin + block_citations] = raw[begin : min(begin + block_citations, end)]
    del raw
    raw_path.unlink()

    def reversed_rows() -> Iterator[tuple[IntArray, IntArray]]:
        for first, last in row_blocks(starts, block_citations):
            block = np.asarray(cited[starts[first] : starts[last]], dtype=np.int64)
            yield block, np.repeat(np.arange(first, last), row_lengths[first:last])

    indegrees = np.zeros_like(degrees)
    for target, _ in reversed_rows():
        indegrees += np.bincount(target, minlength=len(when))
    citer_starts = offsets(indegrees)
    citers = open_memmap(path / "citers.npy", mode="w+", dtype=np.int32, shape=(end,))
    _fill(citers, citer_starts, reversed_rows())
    cited.flush()
    citers.flush()
    for name, array in (
        ("times", when[order]),
        ("order", order),
        ("starts", starts),
        ("citer_starts", citer_starts),
    ):
        np.save(path / f"{name}.npy", array)
    return CitationGraph.open(path)


def _positions(chunks: Chunks, position: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield chunks in sorted positions, without papers that cite themselves."""
    for citing, cited in chunks():
        source, target = np.asarray(citing, dtype=np.int64), np.asarray(cited, dtype=np.int64)
        if source.shape != target.shape or source.ndim != 1:
            raise DataError(
                f"a chunk needs two arrays of one length, got {source.shape} and {target.shape}"
            )
        if len(source) and not (
            min(source.min(), target.min()) >= 0 and max(source.max(), target.max()) < len(position)
        ):
            raise DataError(f"papers are numbered 0 to {len(position) - 1}, a chunk has others")
        other = source != target
        yield position[source[other]], position[target[other]]


def _fill(out: Any, starts: IntArray, chunks: Iterable[tuple[IntArray, IntArray]]) -> None:
    """Append each chunk's entries to their rows, in order of arrival."""
    filled = starts[:-1].copy()
    for rows, entries in chunks:
        order = np.argsort(rows, kind="stable")
        rows, entries = rows[order], entries[order]
        counts = np.bincount(rows, minlength=len(filled))
        if (filled + counts > starts[1:]).any():
            raise DataError("the second pass over the citations gave more than the first")
        rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        out[filled[rows] + rank] = entries
        filled += counts
    if (filled != starts[1:]).any():
        raise DataError("the second pass over the citations gave fewer than the first")


def _distinct(raw: Any, starts: IntArray, first: int, last: int) -> tuple[IntArray, IntArray]:
    """Return rows (counted from `first`) and distinct ascending columns of a range of rows."""
    width = len(starts)
    rows = np.repeat(np.arange(last - first), np.diff(starts[first : last + 1]))
    keys = np.unique(rows * width + raw[starts[first] : starts[last]])
    return keys // width, keys % width
