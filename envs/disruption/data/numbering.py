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
from tokengym.envs.disruption.citation_files import build_on_disk
from tokengym.envs.disruption.data.columns import DTYPES, load_columns, save_columns

IntArray = npt.NDArray[np.int64]
Columns = tuple[Sequence[Path], Sequence[str]]
"""Folders of parts, and the columns to take from them."""

_ABSENT = {"venue": -1, "field": -1}
_CHUNK = 5_000_000


def number_papers(
    sources: Sequence[Columns], fields: Sequence[Sequence[str]], merged: Path | None, folder: Path
) -> dict[str, Any]:
    """Number the papers of the first source, each id once, from the first part that holds it.

    The columns of every source are joined by id; `part` and `row` locate a paper in the last
    source, which has the texts.

    Args:
        sources: the parts that count most first.
        fields: names of the fields in each part that has a column `field`.
        merged: folder of `stage_merged_ids`, if there is one; works that were merged are left out.
        folder: where the columns go, an entry a paper; fields are numbered in the order of names.

    Returns:
        `papers`, how many there are, and `read`, how many records there were.
    """
    names = sorted({name for listed in fields for name in listed})
    code = {name: k for k, name in enumerate(names)}
    # The last entry of each table is what -1, an unknown field, points to.
    tables = [np.array([*(code[n] for n in own), -1], DTYPES["field"]) for own in fields]
    parts = [load_columns(path, "id")[0] for path in sources[0][0]]
    ids, part, row = _find_first_records(parts)
    if merged is not None:
        kept = ~np.isin(ids, load_columns(merged, "old")[0])
        ids, part, row = ids[kept], part[kept], row[kept]
    for k, (folders, listed) in enumerate(sources):
        if k:
            known, part, row = _find_first_records([load_columns(f, "id")[0] for f in folders])
            place, found = find_sorted(known, ids)
            place = np.where(found, place, -1)  # -1 points to what is appended
            part, row = np.append(part, -1)[place], np.append(row, -1)[place]
        for name in listed:
            columns = [load_columns(path, name)[0] for path in folders]
            if name == "field":
                columns = [table[own] for table, own in zip(tables, columns, strict=True)]
            save_columns(folder, **{name: _gather(name, columns, part, row)})
    save_columns(folder, id=ids, part=part, row=row)
    return {"papers": len(ids), "read": sum(map(len, parts))}


def build_graph(
    numbered: Path,
    works: Sequence[Path],
    merged: Path | None,
    tables: Sequence[Path],
    folder: Path,
) -> dict[str, Any]:
    """Build the graph of the citations among numbered papers, and count them.

    Args:
        numbered: folder of `number_papers`.
        works: folders of `stage_works`, whose references are citations.
        merged: folder of `stage_merged_ids`, if there is one; merged ids are followed.
        tables: folders of `stage_citations`.
        folder: where the graph goes.
    """
    (ids,) = load_columns(numbered, "id")

    def list_chunks() -> Iterator[tuple[IntArray, IntArray]]:
        references = _list_references(numbered, ids, works, merged)
        for citing, cited in chain(references, _list_citations(ids, tables)):
            place, found = find_sorted(ids, cited)
            both = found & (citing >= 0)
            yield citing[both], place[both]

    graph = build_on_disk(folder, load_columns(numbered, "year")[0], list_chunks())
    return {"citations": len(graph.cited)}


def _list_references(
    numbered: Path, ids: IntArray, works: Sequence[Path], merged: Path | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the number, or -1, of the citing paper and the id of the cited one, chunk by chunk."""
    part, row = load_columns(numbered, "part", "row")
    nothing = np.zeros(0, np.int64)
    old, new = (nothing, nothing) if merged is None else load_columns(merged, "old", "new")
    for number, path in enumerate(works):
        own_ids, starts, references = load_columns(path, "id", "starts", "references")
        place, found = find_sorted(ids, own_ids)
        # A paper that stands in several parts or rows cites what its first record cites.
        found &= (part[place] == number) & (row[place] == np.arange(len(place)))
        citing = np.repeat(np.where(found, place, -1), np.diff(starts))
        for first in range(0, len(references), _CHUNK):
            cited = np.asarray(references[first : first + _CHUNK])
            if len(old):
                at, moved = find_sorted(old, cited)
                cited = np.where(moved, new[at], cited)
            yield citing[first : first + _CHUNK], cited


def _list_citations(ids: IntArray, tables: Sequence[Path]) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the number, or -1, of the citing paper and the id of the cited one, chunk by chunk."""
    for path in tables:
        citing, cited = load_columns(path, "citing", "cited")
        for first in range(0, len(citing), _CHUNK):
            place, found = find_sorted(ids, np.asarray(citing[first : first + _CHUNK]))
            yield np.where(found, place, -1), np.asarray(cited[first : first + _CHUNK])


def _find_first_records(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Return distinct ids in ascending order, and part and row of the first record of each."""
    ids, index = np.unique(np.concatenate([np.zeros(0, np.int64), *parts]), return_index=True)
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    part = np.searchsorted(ends, index, side="right")
    return ids, part, index - np.append(0, ends)[part]


def _gather(
    name: str, columns: Sequence[npt.NDArray[Any]], part: IntArray, row: IntArray
) -> npt.NDArray[Any]:
    """Return entry `row` of column `part` for each paper."""
    out = np.full(len(part), _ABSENT.get(name, 0), dtype=DTYPES[name])
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(len(columns) + 1))
    for number, column in enumerate(columns):
        those = order[bounds[number] : bounds[number + 1]]
        out[those] = column[row[those]]
    return out
