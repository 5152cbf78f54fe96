"""Reading steps: a part of a source becomes columns, and what was refused becomes notes.

The columns, and what later steps derive from them:
    id: digits of an OpenAlex id.
    year, article: publication year; whether the work is an article to judge.
    venue: digits of the venue's id or -1.
    field: 31 bits of a hash of the field's name or -1.
    title: hash of the words that carry it, whatever their order and endings; 0 if it has none.
    abstract: hash of its normal form, 0 if it has none.
    leaks: whether the text speaks of its own citations or scores.
    starts, references: references of record k are `references[starts[k]:starts[k + 1]]`.
    tenth, median: novelty scores, NaN if undefined.
    team: how many wrote it, 0 if unknown.
    citing, cited: the two ends of a citation.
    part, row: the part that holds a paper's text, -1 if none does, and which record of the part.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.disruption.data.openalex import parse_work_id, read_works
from tokengym.envs.disruption.data.sciscinet import read_citations, read_scores
from tokengym.envs.disruption.data.steps import save_columns
from tokengym.envs.intake.near import content_words, hash_words, normal_form

TEXT_TYPES: Mapping[str, npt.DTypeLike] = {
    "article": np.bool_,
    "venue": np.int64,
    "field": np.int32,
    "title": np.uint64,
    "abstract": np.uint64,
    "leaks": np.bool_,
}
_WORK_TYPES = {"id": np.int64, "year": np.int64, **TEXT_TYPES}

_VENUE_ID = re.compile(r"S([0-9]{1,18})")
_OUTCOME = re.compile(
    r"\bcd[ _-]?index\b|\bdisrupti(?:on|veness) (?:index|score)\b|\bcited_by_count\b"
    r"|\b(?:cited by|cited) \d+\b|\btimes cited\b"
)
_OUTCOME_WORDS = ("cited", "index", "score")
"""Words that such a text contains, at least one; looking for them is ten times faster."""
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


def read_part(
    role: str, path: Path, name: str, skip: bool, group: int | None, folder: Path
) -> dict[str, Any]:
    """Read a file of works, or a row group of a table, into columns.

    Args:
        role: what the file holds, a `Role`.
        path: the file.
        name: its place in the source, which reasons name.
        skip: whether what is damaged is skipped.
        group: which row group of a table.
        folder: where the columns go.

    Returns:
        `refused`, how many records were skipped; `skipped`, the first reasons; `withheld`, by
        reason how many works are not judged.

    Raises:
        DataError: if something is damaged and not to be skipped.
    """
    skipped: list[str] | None = [] if skip else None
    withheld: Counter[str] = Counter()
    if group is None:
        save_columns(folder, **_read_works(path, skipped, withheld))
    else:
        save_columns(folder, **_TABLES[role](path, group, skipped))
    reasons = [reason.replace(str(path), name) for reason in skipped or ()]
    more = len(reasons) - _LISTED_REASONS
    listed = reasons[:_LISTED_REASONS] + [f"and {more} more"] * (more > 0)
    return {"refused": len(reasons), "skipped": listed, "withheld": withheld}


_TABLES: Mapping[str, Callable[[Path, int, list[str] | None], Mapping[str, npt.ArrayLike]]] = {
    "scores": read_scores,
    "citations": read_citations,
}


def _read_works(
    path: Path, skipped: list[str] | None, withheld: Counter[str]
) -> Mapping[str, npt.ArrayLike]:
    rows: list[Sequence[Any]] = []
    references, starts = array("q"), array("q", [0])  # eight bytes each
    for work in read_works([path], skipped):
        venue = _VENUE_ID.fullmatch(work.venue)
        if work.withheld:
            withheld[work.withheld] += 1
        rows.append(
            (
                parse_work_id(work.id),
                work.year,
                work.type == "article" and not work.withheld,
                -1 if venue is None else int(venue[1]),
                hash_words(work.field) >> 33 if work.field else -1,
                hash_words(content_words(work.title)),
                hash_words(normal_form(work.abstract)),
                leaks_outcome(work.id, work.title, work.abstract),
            )
        )
        found = map(parse_work_id, work.references)
        references.extend(reference for reference in found if reference is not None)
        starts.append(len(references))
    columns = zip(*rows, strict=True) if rows else [()] * len(_WORK_TYPES)
    return {
        **{
            name: np.array(column, dtype=kind)
            for (name, kind), column in zip(_WORK_TYPES.items(), columns, strict=True)
        },
        "starts": np.array(starts),
        "references": np.array(references),
    }
