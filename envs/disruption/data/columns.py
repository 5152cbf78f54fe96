"""Reading steps: a part of a source becomes arrays, one `.npy` file per column.

The columns, and what later steps derive from them:
    id: digits of an OpenAlex id; of a user's papers, 64 bits of a hash of the id.
    year, article: publication year; whether the work is an article.
    venue: digits of the venue's id or -1.
    field: number of the field's name or -1; a part numbers its own names.
    title: hash of the words that carry it, whatever their order and endings; 0 if it has none.
    abstract: hash of its normal form, 0 if it has none.
    leaks: whether the text speaks of its own citations or scores.
    starts, references: references of record k are `references[starts[k]:starts[k + 1]]`.
    tenth, median: novelty scores, NaN if undefined.
    team: how many wrote it, 0 if unknown.
    cd, disruption, novel: CD index and the positions of the labels in `LABELS`, -1 if undefined.
    citing, cited: the two ends of a citation.
    old, new: a merged id, and the id it was finally merged into.
    part, row: the part that holds a paper's text, -1 if none does, and which record of the part.
"""

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.array_files import map_array
from tokengym.envs.disruption.data.jsonl import read_papers
from tokengym.envs.disruption.data.openalex import parse_work_id, read_merged_ids, read_works
from tokengym.envs.disruption.data.recipe import Input
from tokengym.envs.disruption.data.sciscinet import read_citations, read_scores
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, NOVELTY_LABELS
from tokengym.envs.intake.near import content_words, hash_words, normal_form

TEXT_COLUMNS = ("article", "venue", "field", "title", "abstract", "leaks")
WORK_COLUMNS = ("year", *TEXT_COLUMNS)
SCORE_COLUMNS = ("year", "tenth", "median", "team")
PAPER_COLUMNS = ("year", "field", "title", "abstract", "leaks", "cd", "disruption", "novel")

DTYPES: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(("id", "year", "venue", "starts", "references"), np.int64),
    **dict.fromkeys(("citing", "cited", "old", "new", "team"), np.int64),
    **dict.fromkeys(("title", "abstract"), np.uint64),
    **dict.fromkeys(("article", "leaks"), np.bool_),
    **dict.fromkeys(("tenth", "median", "cd"), np.float64),
    **dict.fromkeys(("disruption", "novel"), np.int8),
    "field": np.int32,
}

_Read = tuple[Mapping[str, npt.ArrayLike], dict[str, Any]]
"""Columns, and notes as plain JSON."""

_VENUE_ID = re.compile(r"S([0-9]{1,18})")
_OUTCOME = re.compile(
    r"\bcd[ _-]?index\b|\bdisrupti(?:on|veness) (?:index|score)\b|\bcited_by_count\b"
    r"|\b(?:cited by|cited) \d+\b|\btimes cited\b"
)
_OUTCOME_WORDS = ("cited", "index", "score")
"""Words one of which such a text has; looking for them is ten times faster."""
_OWN_ID = re.compile(r"(?<![\w\0])\0(?![\w\0])")
"""A paper's id, written as a zero: a pattern of each id would have to be compiled."""
_LISTED_REASONS = 20


def leaks_outcome(paper_id: str, title: str, abstract: str) -> bool:
    """Whether a text mentions its id, its citations or its scores, which would leak the label."""
    text = f"{title}\n{abstract}"
    if paper_id in text and _OWN_ID.search(text.replace(paper_id, "\0")):
        return True
    folded = text.casefold()
    return any(word in folded for word in _OUTCOME_WORDS) and _OUTCOME.search(folded) is not None


def load_columns(folder: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Map columns of a step's folder into memory."""
    return [map_array(folder / f"{name}.npy") for name in names]


def save_columns(folder: Path, **columns: npt.ArrayLike) -> None:
    """Write columns in their types, or in that of the array where `DTYPES` has none."""
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", np.asarray(column, dtype=DTYPES.get(name)))


def read_part(
    role: str, files: Sequence[Input], skip: bool, options: Sequence[Any], folder: Path
) -> dict[str, Any]:
    """Read a part of a source into columns.

    Args:
        role: what it holds.
        files: the file, or all files of merged ids.
        skip: whether what is damaged is skipped.
        options: of the reader: for works whether those withheld are kept, for tables a row group.
        folder: where the columns go.

    Returns:
        `refused`, how many records were skipped, `skipped`, why, the names of `fields` where there
        are any, and of works how many are `withheld`.

    Raises:
        DataError: if something is damaged and not to be skipped.
    """
    skipped: list[str] | None = [] if skip else None
    columns, notes = _READERS[role]([one.path for one in files], skipped, *options)
    save_columns(folder, **columns)
    return {**notes, **describe_skipped(skipped, files[0].root)}


def describe_skipped(skipped: Sequence[str] | None, root: Path) -> dict[str, Any]:
    """Return the number of skipped records and the first reasons, without the source's place."""
    reasons = [reason.replace(f"{root}/", "") for reason in skipped or ()]
    more = len(reasons) - _LISTED_REASONS
    listed = reasons[:_LISTED_REASONS] + [f"and {more} more"] * (more > 0)
    return {"refused": len(reasons), "skipped": listed}


def _read_works(paths: Sequence[Path], skipped: list[str] | None, keep: bool) -> _Read:
    withheld: Counter[str] = Counter()
    fields: dict[str, int] = {}
    rows, references, starts = [], array("q"), array("q", [0])  # eight bytes each
    for work in read_works(paths, skipped):
        venue = _VENUE_ID.fullmatch(work.venue)
        judged = not work.withheld or (keep and not work.counted)
        if not judged:
            withheld[work.withheld] += 1
        rows.append(
            (
                parse_work_id(work.id),
                work.year,
                work.type == "article" and judged,
                -1 if venue is None else int(venue[1]),
                fields.setdefault(work.field, len(fields)) if work.field else -1,
                *_describe_text(work.id, work.title, work.abstract),
            )
        )
        found = map(parse_work_id, work.references)
        references.extend(reference for reference in found if reference is not None)
        starts.append(len(references))
    columns = {"starts": starts, "references": references, **_columns(WORK_COLUMNS, rows)}
    return columns, {"fields": list(fields), "withheld": dict(sorted(withheld.items()))}


def _read_papers(paths: Sequence[Path], skipped: list[str] | None) -> _Read:
    fields: dict[str, int] = {}
    rows = [
        (
            _hash_id(paper.openalex_id),
            paper.publication_year,
            fields.setdefault(paper.primary_field, len(fields)),
            *_describe_text(paper.openalex_id, paper.title, paper.abstract),
            np.nan if paper.cd_index is None else paper.cd_index,
            _position(paper.disruption_label, DISRUPTION_LABELS),
            _position(paper.novelty_label, NOVELTY_LABELS),
        )
        for path in paths
        for paper in read_papers(path, skipped)
    ]
    return _columns(PAPER_COLUMNS, rows), {"fields": list(fields)}


def _read_merged_ids(paths: Sequence[Path], skipped: list[str] | None) -> _Read:
    """Read which works were merged into which, in ascending order of `old`."""
    pairs = [tuple(map(parse_work_id, pair)) for pair in read_merged_ids(paths, skipped).items()]
    known = np.array(sorted(pair for pair in pairs if None not in pair), np.int64).reshape(-1, 2)
    return {"old": known[:, 0], "new": known[:, 1]}, {}


_READERS: Mapping[str, Callable[..., _Read]] = {
    "works": _read_works,
    "papers": _read_papers,
    "merged": _read_merged_ids,
    "scores": lambda paths, skipped, group: (read_scores(paths[0], group, skipped), {}),
    "citations": lambda paths, skipped, group: (read_citations(paths[0], group, skipped), {}),
}


def _describe_text(paper_id: str, title: str, abstract: str) -> tuple[int, int, bool]:
    """Columns `title`, `abstract` and `leaks` of a text."""
    leaks = leaks_outcome(paper_id, title, abstract)
    return hash_words(content_words(title)), hash_words(normal_form(abstract)), leaks


def _hash_id(paper_id: str) -> int:
    digest = hashlib.blake2b(paper_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _position(label: str | None, labels: Sequence[str]) -> int:
    return -1 if label is None else labels.index(label)


def _columns(names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    """Return rows of an id and some columns by the names of the columns."""
    columns = zip(*rows, strict=True) if rows else [()] * (len(names) + 1)
    return dict(zip(("id", *names), columns, strict=True))
