"""Works, scores and citations as arrays in files: what a build keeps of each part of its source.

Each function here is the work of one step: it reads one part and writes `.npy` files, one entry a
record, in the order of the part. Ids of works are the digits after the `W`.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.openalex import read_merged_ids, read_parts
from tokengym.envs.disruption.data.parts import refuse
from tokengym.envs.disruption.data.sciscinet import read_citations, read_scores
from tokengym.envs.disruption.data.work import Work

Arrays = Mapping[str, npt.NDArray[Any]]

_WORK_ID = re.compile(r"W([0-9]{1,18})")
_VENUE_ID = re.compile(r"S([0-9]{1,18})")
_WORD = re.compile(r"\w+")
_TELLS = re.compile(
    r"\bcd[ _-]?index\b|\bdisrupti(?:on|veness) (?:index|score)\b|\bcited_by_count\b"
    r"|\b(?:cited by|cited) \d+\b|\btimes cited\b",
    re.IGNORECASE,
)
_KEPT_REASONS = 20


def work_number(work_id: str) -> int | None:
    """The number of an OpenAlex work id such as `W2741809807`; `None` of anything else."""
    match = _WORK_ID.fullmatch(work_id)
    return None if match is None else int(match[1])


def text_hash(text: str) -> int:
    """64 bits of a text's words, whatever their case and punctuation; 0 of no words."""
    words = " ".join(_WORD.findall(text.casefold()))
    digest = hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest) if words else 0


def tells_of_later(work_id: str, title: str, abstract: str) -> bool:
    """Whether a text speaks of its own id, its citations or the score: no text to predict from."""
    text = f"{title}\n{abstract}"
    return (
        _TELLS.search(text) is not None or re.search(rf"\b{re.escape(work_id)}\b", text) is not None
    )


def numbered_works(path: Path, skipped: list[str] | None) -> Iterator[tuple[int, Work]]:
    """Yield the works of a part of OpenAlex with their numbers; see `read_parts`."""
    for work in read_parts([path], {}, skipped):
        number = work_number(work.id)
        if number is None:
            refuse(f"{path}: not the id of a work: {work.id!r}", skipped)
        else:
            yield number, work


def stage_works(path: Path, root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Write the works of a part of OpenAlex.

    Args:
        path: the part.
        root: the source, which messages leave out.
        skip: whether damaged lines and parts are passed over.
        folder: where the arrays go.

    Returns:
        `fields`, the names that `field` numbers, and `skipped`, reasons.

    Raises:
        DataError: if the part is damaged and `skip` is false.
    """
    skipped: list[str] | None = [] if skip else None
    codes: dict[str, int] = {}
    rows: list[tuple[int, int, bool, int, int, int, int, int, bool]] = []
    references: list[int] = []
    starts = [0]
    for number, work in numbered_works(path, skipped):
        rows.append(_row(work, number, codes))
        found = (work_number(reference) for reference in work.references)
        references += [reference for reference in found if reference is not None]
        starts.append(len(references))
    types = (
        np.int64,
        np.int32,
        np.bool_,
        np.int64,
        np.int16,
        np.int64,
        np.uint64,
        np.uint64,
        np.bool_,
    )
    names = ("id", "year", "article", "venue", "field", "cited_by", "title", "abstract", "tells")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays: dict[str, npt.NDArray[Any]] = {
        name: np.array(column, dtype=kind)
        for name, column, kind in zip(names, columns, types, strict=True)
    }
    arrays["starts"] = np.array(starts, dtype=np.int64)
    arrays["references"] = np.array(references, dtype=np.int64)
    _save(folder, arrays)
    return {"fields": list(codes), "skipped": _reasons(skipped, root)}


def _row(
    work: Work, number: int, codes: dict[str, int]
) -> tuple[int, int, bool, int, int, int, int, int, bool]:
    venue = _VENUE_ID.fullmatch(work.venue)
    return (
        number,
        work.year,
        work.type == "article",
        -1 if venue is None else int(venue[1]),
        codes.setdefault(work.field, len(codes)) if work.field else -1,
        work.cited_by_count,
        text_hash(work.title),
        text_hash(work.abstract),
        tells_of_later(work.id, work.title, work.abstract),
    )


def stage_merged_ids(root: Path, skip: bool, folder: Path) -> dict[str, Any]:
    """Write which works of a snapshot were merged into which: `old`, ascending, and `new`."""
    skipped: list[str] | None = [] if skip else None
    pairs = [
        (work_number(old), work_number(new)) for old, new in read_merged_ids(root, skipped).items()
    ]
    table = np.array(
        sorted((old, new) for old, new in pairs if old is not None and new is not None),
        dtype=np.int64,
    ).reshape(-1, 2)
    _save(folder, {"old": table[:, 0], "new": table[:, 1]})
    return {"skipped": _reasons(skipped, root)}


def stage_scores(
    path: Path, row_group: int, root: Path, skip: bool, folder: Path
) -> dict[str, Any]:
    """Write ids, years and novelty scores of rows of a `sciscinet_papers` table.

    Args:
        path: the table.
        row_group: which of its row groups.
        root: the source, which messages leave out.
        skip: whether damaged rows and row groups are passed over.
        folder: where the arrays go; a score that is missing is NaN.

    Raises:
        DataError: if something is damaged and `skip` is false.
    """
    skipped: list[str] | None = [] if skip else None
    rows: list[tuple[int, int, float, float]] = []
    try:
        for scores in read_scores(path, row_group):
            number = work_number(scores.id)
            if number is None:
                refuse(f"{path}: not the id of a work: {scores.id!r}", skipped)
                continue
            tenth, median = scores.tenth_percentile_z, scores.median_z
            if tenth is None or median is None or tenth > median:
                tenth = median = np.nan
            rows.append((number, scores.year, tenth, median))
    except DataError as error:
        refuse(str(error), skipped, error)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 4
    names, kinds = ("id", "year", "tenth", "median"), (np.int64, np.int32, np.float64, np.float64)
    _save(
        folder,
        {n: np.array(c, dtype=k) for n, c, k in zip(names, columns, kinds, strict=True)},
    )
    return {"skipped": _reasons(skipped, root)}


def stage_citations(
    path: Path, row_group: int, root: Path, skip: bool, folder: Path
) -> dict[str, Any]:
    """Write rows of a `sciscinet_paperrefs` table as `citing` and `cited`; see `stage_scores`."""
    skipped: list[str] | None = [] if skip else None
    citing: list[int] = []
    cited: list[int] = []
    try:
        for source, target in read_citations(path, row_group):
            ends = work_number(source), work_number(target)
            if ends[0] is None or ends[1] is None:
                refuse(f"{path}: not the ids of two works: {source!r}, {target!r}", skipped)
                continue
            citing.append(ends[0])
            cited.append(ends[1])
    except DataError as error:
        refuse(str(error), skipped, error)
    _save(
        folder,
        {"citing": np.array(citing, dtype=np.int64), "cited": np.array(cited, dtype=np.int64)},
    )
    return {"skipped": _reasons(skipped, root)}


def load(folder: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Map arrays of a step's folder into memory."""
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in names]


def _save(folder: Path, arrays: Arrays) -> None:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)


def _reasons(skipped: Sequence[str] | None, root: Path) -> list[str]:
    """The first reasons, without the place of the source, and how many more there are."""
    told = [reason.replace(f"{root}/", "") for reason in (skipped or [])[:_KEPT_REASONS]]
    more = len(skipped or []) - len(told)
    return [*told, f"and {more} more"] if more else told
