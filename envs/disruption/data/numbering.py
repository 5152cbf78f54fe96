"""From the arrays of many parts to one numbered literature and its citation graph on disk.

Papers are numbered in the order of their ids. Memory holds some forty bytes a paper; citations stay
in files. Each function is the work of one step.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.citation_files import build_on_disk
from tokengym.envs.disruption.citations import CitationGraph
from tokengym.envs.disruption.data.columns import load
from tokengym.envs.disruption.data.scoring import Corpus

IntArray = npt.NDArray[np.int64]

ATTRIBUTES = ("article", "venue", "field", "cited_by", "title", "abstract", "tells")
_ABSENT = {"venue": -1, "field": -1}
_CHUNK = 5_000_000


class Papers(NamedTuple):
    """The numbered papers, one entry a paper in ascending id; arrays are mapped from disk.

    Attributes:
        id: digits of the id.
        year: publication year.
        part: which part of the source its text stands in, -1 if in none.
        row: which record of that part.
        article: whether it is an article.
        venue: digits of the venue's id, -1 if unknown.
        field: number of the field, -1 if unknown.
        cited_by: citations to date.
        title: hash of the title's words, 0 if it has none.
        abstract: hash of the abstract's words, 0 if it has none.
        tells: whether its text speaks of what came later.
    """

    id: IntArray
    year: IntArray
    part: IntArray
    row: IntArray
    article: npt.NDArray[np.bool_]
    venue: IntArray
    field: npt.NDArray[np.int16]
    cited_by: IntArray
    title: npt.NDArray[np.uint64]
    abstract: npt.NDArray[np.uint64]
    tells: npt.NDArray[np.bool_]


def open_papers(folder: Path) -> Papers:
    """Map what `number_works` or `number_scores` wrote."""
    return Papers(*load(folder, *Papers._fields))


def number_works(
    parts: Sequence[Path], fields: Sequence[Sequence[str]], merged: Path | None, folder: Path
) -> dict[str, Any]:
    """Number the works of some parts, each id once, from the first part that holds it.

    Args:
        parts: folders of `stage_works`, the part that counts most first.
        fields: names of the fields in each.
        merged: folder of `stage_merged_ids`, if there is one; works that were merged are left out.
        folder: where the arrays go.

    Returns:
        `fields`, the names that `field` numbers, and `read`, how many records there were.
    """
    ids, part, row = _first([load(path, "id")[0] for path in parts])
    if merged is not None:
        kept = ~np.isin(ids, load(merged, "old")[0])
        ids, part, row = ids[kept], part[kept], row[kept]
    names = _write_attributes(folder, parts, fields, part, row)
    year = _gather([load(path, "year")[0] for path in parts], part, row, np.dtype(np.int64), 0)
    for name, array in (("id", ids), ("year", year), ("part", part), ("row", row)):
        np.save(folder / f"{name}.npy", array)
    return {"fields": names, "read": sum(len(load(path, "id")[0]) for path in parts)}


def number_scores(
    scores: Sequence[Path], parts: Sequence[Path], fields: Sequence[Sequence[str]], folder: Path
) -> dict[str, Any]:
    """Number the papers of `sciscinet_papers` tables; what works tell of them is joined by id.

    Besides the arrays of `number_works` it writes `novelty`, shape (n, 2), NaN if undefined.

    Args:
        scores: folders of `stage_scores`.
        parts: folders of `stage_works`; a paper without a work has no text and no attributes.
        fields: names of the fields in each.
        folder: where the arrays go.
    """
    ids, table, at = _first([load(path, "id")[0] for path in scores])
    columns = [
        _gather([load(path, name)[0] for path in scores], table, at, np.dtype(np.float64), np.nan)
        for name in ("tenth", "median")
    ]
    year = _gather([load(path, "year")[0] for path in scores], table, at, np.dtype(np.int64), 0)
    known, work_part, work_row = _first([load(path, "id")[0] for path in parts])
    place, found = _find(known, ids)
    part, row = np.where(found, work_part[place], -1), np.where(found, work_row[place], -1)
    names = _write_attributes(folder, parts, fields, part, row)
    np.save(folder / "novelty.npy", np.stack(columns, axis=1))
    for name, array in (("id", ids), ("year", year), ("part", part), ("row", row)):
        np.save(folder / f"{name}.npy", array)
    return {"fields": names, "read": sum(len(load(path, "id")[0]) for path in scores)}


def graph_of_works(
    numbered: Path, parts: Sequence[Path], merged: Path | None, folder: Path
) -> dict[str, Any]:
    """Build the graph of the references among numbered works; merged ids are followed."""
    papers = open_papers(numbered)
    ids = np.asarray(papers.id)
    old, new = load(merged, "old", "new") if merged is not None else [np.zeros(0, np.int64)] * 2

    def chunks() -> Iterator[tuple[IntArray, IntArray]]:
        for number, path in enumerate(parts):
            part_ids, starts, references = load(path, "id", "starts", "references")
            place, found = _find(ids, part_ids)
            # An id that stands in several parts or rows cites what its first record cites.
            found &= (papers.part[place] == number) & (papers.row[place] == np.arange(len(place)))
            citing = np.repeat(np.where(found, place, -1), np.diff(starts))
            for first in range(0, len(references), _CHUNK):
                cited = np.asarray(references[first : first + _CHUNK])
                at, moved = _find(old, cited)
                cited = np.where(moved, new[at] if len(new) else 0, cited)
                yield _within(citing[first : first + _CHUNK], *_find(ids, cited))

    return _built(folder, papers, chunks)


def graph_of_citations(numbered: Path, tables: Sequence[Path], folder: Path) -> dict[str, Any]:
    """Build the graph of the citations of `stage_citations` among numbered papers."""
    papers = open_papers(numbered)
    ids = np.asarray(papers.id)

    def chunks() -> Iterator[tuple[IntArray, IntArray]]:
        for path in tables:
            citing, cited = load(path, "citing", "cited")
            for first in range(0, len(citing), _CHUNK):
                place, found = _find(ids, np.asarray(citing[first : first + _CHUNK]))
                chunk = np.asarray(cited[first : first + _CHUNK])
                yield _within(np.where(found, place, -1), *_find(ids, chunk))

    return _built(folder, papers, chunks)


def open_corpus(graph: Path, numbered: Path) -> Corpus:
    """Map a graph and what is known of its papers."""
    papers = open_papers(numbered)
    return Corpus(CitationGraph.open(graph), papers.article, papers.venue, papers.field)


def _built(
    folder: Path, papers: Papers, chunks: Callable[[], Iterator[tuple[IntArray, IntArray]]]
) -> dict[str, Any]:
    graph = build_on_disk(folder, papers.year, chunks)
    return {"citations": len(graph.cited)}


def _first(parts: Sequence[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """Distinct ids in ascending order, and part and row of the first record of each."""
    everything = np.concatenate([np.zeros(0, np.int64), *parts])
    ids, index = np.unique(everything, return_index=True)
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    part = np.searchsorted(ends, index, side="right")
    begins = np.concatenate([[0], ends])
    return ids, part, index - begins[part]


def _find(ids: IntArray, wanted: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Where each of `wanted` stands among ascending `ids`, and whether it does."""
    if not len(ids):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return place, ids[place] == wanted


def _within(
    citing: IntArray, cited: IntArray, found: npt.NDArray[np.bool_]
) -> tuple[IntArray, IntArray]:
    """Citations both ends of which are numbered."""
    both = found & (citing >= 0)
    return citing[both], cited[both]


def _gather(
    columns: Sequence[npt.NDArray[Any]],
    part: IntArray,
    row: IntArray,
    kind: np.dtype[Any],
    absent: float,
) -> npt.NDArray[Any]:
    """Entry `row` of column `part` for each paper; `absent` where there is no part."""
    out = np.full(len(part), absent, dtype=kind)
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(len(columns) + 1))
    for number, column in enumerate(columns):
        those = order[bounds[number] : bounds[number + 1]]
        out[those] = column[row[those]]
    return out


def _write_attributes(
    folder: Path,
    parts: Sequence[Path],
    fields: Sequence[Sequence[str]],
    part: IntArray,
    row: IntArray,
) -> list[str]:
    """Write the attributes of each paper; fields are numbered anew, by the order of their names."""
    names = sorted({name for listed in fields for name in listed})
    code = {name: k for k, name in enumerate(names)}
    for attribute in ATTRIBUTES:
        columns = [load(path, attribute)[0] for path in parts]
        kind = columns[0].dtype if columns else np.dtype(np.int64)
        if attribute == "field":
            # The last entry of the table is what -1, an unknown field, points to.
            tables = [np.array([*(code[n] for n in own), -1], dtype=np.int16) for own in fields]
            columns = [table[column] for table, column in zip(tables, columns, strict=True)]
        out = _gather(columns, part, row, kind, _ABSENT.get(attribute, 0))
        np.save(folder / f"{attribute}.npy", out)
    return names
