"""Citation graphs larger than memory, built on disk from chunks of citations.

Memory holds a few numbers a paper and one block; citations lie in files from the start. The result
is the graph that `CitationGraph.from_edges` would build.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from tokengym.envs.disruption.array_files import (
    NewArray,
    ScratchArray,
    group_runs,
    scratch_arrays,
    sort_distinct,
)
from tokengym.envs.disruption.citations import CitationGraph, offsets, row_blocks

IntArray = npt.NDArray[np.int64]
Chunks = Iterable[tuple[IntArray, IntArray]]
"""The citations as (citing, cited) chunks."""

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
        chunks: numbers of citing and of cited papers, from 0 to n - 1.
        block_citations: most citations sorted at a time (about 40 bytes each), if no single
            paper has more.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    when = np.asarray(times, dtype=np.int64)
    order = np.argsort(when, kind="stable")
    np.save(path / "times.npy", when[order])
    np.save(path / "order.npy", order)
    position = np.empty(len(when), dtype=np.int64)
    position[order] = np.arange(len(when))
    with scratch_arrays(path) as new:
        citing, cited = new(np.int64), new(np.int64)
        for source, target in chunks:
            row, column = position[source], position[target]
            other = row != column  # a paper that cites itself does not count
            citing.append((row * len(when) + column)[other])
        for keys, turned, pointers, columns in (
            (citing, cited, "starts", "cited"),
            (cited, None, "citer_starts", "citers"),
        ):
            lengths, entries = np.zeros(len(when), dtype=np.int64), new(np.int32)
            for row, column in _sort_rows(keys, len(when), block_citations, new):
                if len(row):
                    lengths[row[0] : row[-1] + 1] = np.bincount(row - row[0])
                entries.append(column)
                if turned is not None:
                    turned.append(column * len(when) + row)
            np.save(path / f"{pointers}.npy", offsets(lengths))
            shape = (len(entries),)
            out = open_memmap(path / f"{columns}.npy", mode="w+", dtype=np.int32, shape=shape)
            for some in entries.slices(block_citations):
                out[some] = entries[some]
            out.flush()
    return CitationGraph.open(path)


def _sort_rows(
    keys: ScratchArray, papers: int, most: int, new: NewArray
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield rows and columns of distinct keys, `row * papers + column`, in ascending order."""
    degrees = np.zeros(papers, dtype=np.int64)
    for some in keys.slices(most):
        np.add.at(degrees, keys[some] // papers, 1)
    starts = offsets(degrees)
    firsts = np.array([first for first, _ in row_blocks(starts, most)], dtype=np.int64)
    blocks = new(np.int64)
    ends = starts[firsts]
    for some in keys.slices(most):
        block = np.searchsorted(firsts, keys[some] // papers, side="right") - 1
        order, runs, ends = group_runs(ends, block)
        blocks.write_runs(runs, keys[some][order])
    for begin, end in zip(starts[firsts], ends, strict=True):
        distinct = sort_distinct(blocks[begin:end])
        yield distinct // papers, distinct % papers
