"""Numbering steps: the columns of many parts become one numbered literature and its graph on disk.

Papers are numbered in the order of their ids. Memory holds some forty bytes a paper; citations stay
in files.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.array_files import find_sorted
from tokengym.envs.disruption.citations import build_on_disk
from tokengym.envs.disruption.data.columns import DTYPES, load_columns, save_columns
from tokengym.envs.disruption.data.steps import Done
from tokengym.rewards.arrays import Ints

_ABSENT = {"venue": -1, "field": -1}
_CHUNK = 5_000_000


def number_papers(
    sources: Sequence[tuple[Sequence[Done], Sequence[str]]], merged: Done | None, folder: Path
) -> dict[str, Any]:
    """Number the papers of the first source, each id once, from the first part that holds it.

    The columns of every source are joined by id; `part` and `row` locate a paper in the last
    source, which has the texts, if it has parts.

    Args:
        sources: parts that were read, and the columns to take from them; the parts that count most
            first.
        merged: the merged ids, if there are any; works that were merged are left out.
        folder: where the columns go, an entry a paper; fields are numbered in the order of names.

    Returns:
        `papers`, how many there are, and `read`, how many records there were.
    """
    ids, place, read = _find_first_records(sources[0][0])
    if merged is not None:
        kept = ~np.isin(ids, load_columns(merged.path, "old")[0])
        ids, place = ids[kept], place[kept]
    for k, (parts, names) in enumerate(sources):
        if k:
            known, first, _ = _find_first_records(parts)
            at, found = find_sorted(known, ids)
            place = np.where(found, np.append(first, -1)[at], -1)
        for name in names:
            save_columns(folder, **{name: _gather(name, parts, place)})
    texts = [load_columns(one.path, "id")[0] for one in sources[-1][0]]
    ends = np.cumsum([len(own) for own in texts], dtype=np.int64)
    part = np.where(place < 0, -1, np.searchsorted(ends, place, side="right"))
    row = place - np.append(0, ends)[np.maximum(part, 0)]
    save_columns(folder, id=ids, part=part, row=row)
    return {"papers": len(ids), "read": read}


def build_graph(
    numbered: Done, parts: Sequence[Done], merged: Done | None, folder: Path
) -> dict[str, Any]:
    """Build the graph of the citations among numbered papers, and count them.

    Args:
        numbered: result of `number_papers`.
        parts: works, whose references are citations, or tables of citations.
        merged: the merged ids, if there are any, which are followed.
        folder: where the graph goes.
    """
    ids, part, row, year = load_columns(numbered.path, "id", "part", "row", "year")
    old, new = np.zeros((2, 0), np.int64)
    if merged is not None:
        old, new = load_columns(merged.path, "old", "new")

    def list_chunks() -> Iterator[tuple[Ints, Ints]]:
        for number, path in enumerate(one.path for one in parts):
            if (path / "starts.npy").exists():
                own, starts, cited = load_columns(path, "id", "starts", "references")
                place, found = find_sorted(ids, own)
                # A paper in several parts or rows cites what its first record cites.
                found &= (part[place] == number) & (row[place] == np.arange(len(place)))
                counts = np.diff(starts)
                place, found = np.repeat(place, counts), np.repeat(found, counts)
            else:
                citing, cited = load_columns(path, "citing", "cited")
                place, found = find_sorted(ids, citing)
            for first in range(0, len(cited), _CHUNK):
                chunk = slice(first, first + _CHUNK)
                at, moved = find_sorted(old, cited[chunk])
                kept = np.where(moved, np.append(new, 0)[at], cited[chunk])
                target, known = find_sorted(ids, kept)
                both = known & found[chunk]
                yield place[chunk][both], target[both]

    graph = build_on_disk(folder, year, list_chunks())
    return {"citations": len(graph.cited)}


def _find_first_records(parts: Sequence[Done]) -> tuple[Ints, Ints, int]:
    """Return distinct ids, ascending, the place of each one's first record, and all records."""
    listed = [load_columns(one.path, "id")[0] for one in parts]
    every = np.concatenate([np.zeros(0, np.int64), *listed])
    return *np.unique(every, return_index=True), len(every)


def _gather(name: str, parts: Sequence[Done], place: Ints) -> npt.NDArray[Any]:
    """Return the entries of a column at some places among all records; -1 is none."""
    columns = [load_columns(one.path, name)[0] for one in parts]
    if name == "field":
        listed = [one.notes["fields"] for one in parts]
        code = {field: k for k, field in enumerate(sorted({*chain(*listed)}))}
        # The last entry of each table is what -1, an unknown field, points to.
        tables = [np.array([*(code[field] for field in own), -1]) for own in listed]
        columns = [table[own] for table, own in zip(tables, columns, strict=True)]
    absent = np.full(1, _ABSENT.get(name, 0), DTYPES[name])
    return np.concatenate([*columns, absent])[place]
