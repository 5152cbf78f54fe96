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
    cd, disruption, novel: CD index and the positions of the labels in `LABELS`, -1 if undefined.
    citing, cited: the two ends of a citation.
    old, new: a merged id, and the id it was finally merged into.
    part, row: the part that holds a paper's text, -1 if none does, and which record of the part.
"""

import hashlib
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.array_files import map_array
from tokengym.envs.disruption.data.jsonl import read_papers
from tokengym.envs.disruption.data.openalex import (
    Work,
    parse_work_id,
    read_merged_ids,
    read_works,
)
from tokengym.envs.disruption.data.sciscinet import read_citations, read_scores
from tokengym.envs.disruption.labels import DISRUPTION_LABELS, NOVELTY_LABELS
from tokengym.envs.intake.near import content_words, hash_words, normal_form

TEXT_COLUMNS = ("article", "venue", "field", "title", "abstract", "leaks")
WORK_COLUMNS = ("year", *TEXT_COLUMNS)
SCORE_COLUMNS = ("year", "tenth", "median")
PAPER_COLUMNS = ("year", "field", "title", "abstract", "leaks", "cd", "disruption", "novel")

DTYPES: Mapping[str, type[np.generic]] = {
    **dict.fromkeys(("id", "year", "venue", "starts", "references"), np.int64),
    **dict.fromkeys(("citing", "cited", "old", "new"), np.int64),
    **dict.fromkeys(("title", "abstract"), np.uint64),
    **dict.fromkeys(("article", "leaks"), np.bool_),
    **dict.fromkeys(("tenth", "median", "cd"), np.float64),
    **dict.fromkeys(("disruption", "novel"), np.int8),
    "field": np.int32,
}

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


def read_numbered_works(path: Path, skipped: list[str] | None) -> Iterator[tuple[int, Work]]:
    """Yield the works of a part of OpenAlex with the digits of their ids; see `read_works`."""
    for work in read_works([path], skipped=skipped):
        yield int(work.id.removeprefix("W")), work


def load_columns(folder: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Map columns of a step's folder into memory."""
    return [map_array(folder / f"{name}.npy") for name in names]


def load_own_scores(folder: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Map the novelty scores of a source that has its own into memory."""
    if not (folder / "tenth.npy").exists():
        return None
    tenth, median = load_columns(folder, "tenth", "median")
    return tenth, median


def save_columns(folder: Path, **columns: npt.ArrayLike) -> None:
    """Write columns in their types, or in that of the array where `DTYPES` has none."""
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", np.asarray(column, dtype=DTYPES.get(name)))


# Each step below reads the part at `path` into `folder`. Messages leave out `root`, the source's
# place. It returns `refused`, how many records were skipped, `skipped`, why, and the names of
# `fields` where there are any, and raises a `DataError` if something is damaged and `skip` is off.


def stage_works(path: Path, root: Path, skip: bool, keep: bool, folder: Path) -> dict[str, Any]:
    """Read the works of a part of OpenAlex; unless `keep`, those withheld count as no articles."""
    withheld: Counter[str] = Counter()
    skipped: list[str] | None = [] if skip else None
    fields: dict[str, int] = {}
    rows, references, starts = [], array("q"), array("q", [0])  # eight bytes each
    for number, work in read_numbered_works(path, skipped):
        venue = _VENUE_ID.fullmatch(work.venue)
        field = fields.setdefault(work.field, len(fields)) if work.field else -1
        text = _describe_text(work.id, work.title, work.abstract)
        if work.withheld and not keep:
            withheld[work.withheld] += 1
        article = work.type == "article" and (keep or not work.withheld)
        venue_id = -1 if venue is None else int(venue[1])
        rows.append((number, work.year, article, venue_id, field, *text))
        found = map(parse_work_id, work.references)
        references.extend(reference for reference in found if reference is not None)
        starts.append(len(references))
    _save_rows(folder, ("id", *WORK_COLUMNS), rows)
    save_columns(folder, starts=starts, references=references)
    counts = {"withheld": dict(sorted(withheld.items()))}
    return {"fields": list(fields), **counts, **_describe_skipped(skipped, root)}


def stage_papers(path: Path, root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Read a file of papers with labels."""
    skipped: list[str] | None = [] if skip else None
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
        for paper in read_papers(path, skipped)
    ]
    _save_rows(folder, ("id", *PAPER_COLUMNS), rows)
    return {"fields": list(fields), **_describe_skipped(skipped, root)}


def stage_merged_ids(root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Read which works of a snapshot were merged into which, in ascending order of `old`."""
    skipped: list[str] | None = [] if skip else None
    pairs = [tuple(map(parse_work_id, pair)) for pair in read_merged_ids(root, skipped).items()]
    _save_rows(folder, ("old", "new"), sorted(pair for pair in pairs if None not in pair))
    return _describe_skipped(skipped, root)


def stage_scores(path: Path, group: int, root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Read a row group of a `sciscinet_papers` table."""
    skipped: list[str] | None = [] if skip else None
    save_columns(folder, **read_scores(path, group, skipped))
    return _describe_skipped(skipped, root)


def stage_citations(path: Path, group: int, root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Read a row group of a `sciscinet_paperrefs` table."""
    skipped: list[str] | None = [] if skip else None
    save_columns(folder, **read_citations(path, group, skipped))
    return _describe_skipped(skipped, root)


def _describe_text(paper_id: str, title: str, abstract: str) -> tuple[int, int, bool]:
    """Columns `title`, `abstract` and `leaks` of a text."""
    leaks = leaks_outcome(paper_id, title, abstract)
    return hash_words(content_words(title)), hash_words(normal_form(abstract)), leaks


def _hash_id(paper_id: str) -> int:
    digest = hashlib.blake2b(paper_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _position(label: str | None, labels: Sequence[str]) -> int:
    return -1 if label is None else labels.index(label)


def _save_rows(folder: Path, names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    save_columns(folder, **dict(zip(names, columns, strict=True)))


def _describe_skipped(skipped: Sequence[str] | None, root: Path) -> dict[str, Any]:
    """The number of skipped records and the first reasons, without the place of the source."""
    listed = [reason.replace(f"{root}/", "") for reason in (skipped or [])[:_LISTED_REASONS]]
    more = len(skipped or []) - len(listed)
    return {
        "refused": len(skipped or []),
        "skipped": [*listed, f"and {more} more"] if more else listed,
    }
