"""Works of OpenAlex as JSON objects, from a snapshot, pages of the API or any other files."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.json_objects import read_objects, refuse
from tokengym.envs.disruption.paper import LAST_YEAR, MOST_CITATIONS

_WORK_ID = re.compile(r"W([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Work:
    """One bibliographic record.

    Attributes:
        id: OpenAlex id without its address, such as `W2741809807`.
        title: title, possibly empty.
        abstract: abstract, possibly empty.
        year: publication year.
        type: such as `article`.
        venue: id of the journal or conference, the empty string if unknown.
        field: primary field, the empty string if unknown.
        cited_by_count: citations to date.
        references: ids of the works it cites.
    """

    id: str
    title: str
    abstract: str
    year: int
    type: str
    venue: str
    field: str
    cited_by_count: int
    references: tuple[str, ...]


def find_snapshot_parts(root: Path) -> list[Path]:
    """Return the parts of a snapshot, `works/updated_date=*/*.gz` at any depth, newest first."""
    return sorted(
        root.glob("**/works/updated_date=*/*.gz"),
        key=lambda part: (part.parent.name, part.name),
        reverse=True,
    )


def find_merged_ids(root: Path) -> list[Path]:
    """Return the files of a snapshot that list merged ids."""
    return sorted(root.glob("**/merged_ids/works/*.csv.gz"))


def read_snapshot(folder: Path | str, skipped: list[str] | None = None) -> Iterator[Work]:
    """Yield the works of a snapshot, newest parts first.

    Ids that were merged into others are replaced, in references too, and merged works left out.
    A work that occurs in several parts, as after an update on top of an older copy, is taken from
    the newest.

    Args:
        folder: what holds `works/` and, if there are any, `merged_ids/works/`, at any depth.
        skipped: collects what is wrong with damaged lines and parts, which are then skipped.

    Raises:
        DataError: if there are no parts, or one is damaged and `skipped` is `None`.
    """
    root = Path(folder)
    parts = find_snapshot_parts(root)
    if not parts:
        raise DataError(f"{root} holds no works/updated_date=*/*.gz")
    yield from read_works(parts, read_merged_ids(root, skipped), skipped)


def read_works(
    parts: Iterable[Path],
    merged: Mapping[str, str] | None = None,
    skipped: list[str] | None = None,
) -> Iterator[Work]:
    """Yield the works of files of JSON, each id once, from the first part that holds it.

    Works without a publication year are left out.

    Args:
        parts: the files.
        merged: ids that were merged into others.
        skipped: collects what is wrong with damaged lines and parts, which are then skipped.

    Raises:
        DataError: if a part is damaged and `skipped` is `None`.
    """
    merged = merged or {}
    seen: set[str] = set()
    for part in parts:
        for where, fields in read_objects(part, skipped):
            try:
                work = _parse_work(fields, merged)
            except (
                KeyError,
                TypeError,
                ValueError,
                AttributeError,
                OverflowError,
                RecursionError,
            ) as error:
                refuse(f"{where}: not a work: {_explain(error)}", skipped, error)
                continue
            if work is not None and work.id not in seen and work.id not in merged:
                seen.add(work.id)
                yield work


def read_merged_ids(root: Path, skipped: list[str] | None = None) -> dict[str, str]:
    """Return, by id, the id it was finally merged into.

    Raises:
        DataError: if a file is damaged and `skipped` is `None`.
    """
    step: dict[str, str] = {}
    for path in find_merged_ids(root):
        try:
            with gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="") as file:
                rows = csv.DictReader(file)
                for row in rows:
                    if None in (row["id"], row["merge_into_id"]):
                        refuse(f"{path}, line {rows.line_num}: cells are missing", skipped)
                        continue
                    step[shorten_id(row["id"])] = shorten_id(row["merge_into_id"])
        except (OSError, EOFError, zlib.error, KeyError, csv.Error) as error:
            refuse(f"{path}: not a list of merged ids: {error!r}", skipped, error)
    final = {}
    for old in step:
        new, passed = step[old], {old}
        while new in step and new not in passed:
            passed.add(new)
            new = step[new]
        final[old] = new
    return final


def rebuild_abstract(inverted_index: Mapping[str, list[int]]) -> str:
    """Rebuild an abstract from the positions of its words."""
    words = [(place, word) for word, places in inverted_index.items() for place in places]
    return " ".join(word for _, word in sorted(words))


def shorten_id(address: str) -> str:
    """Return `W2741809807` for `https://openalex.org/W2741809807`."""
    return address.rpartition("/")[2].upper()


def parse_work_id(work_id: str) -> int | None:
    """Return the number of a work id such as `W2741809807`, `None` for anything else."""
    match = _WORK_ID.fullmatch(work_id)
    return None if match is None else int(match[1])


def _explain(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]}"
    return str(error) if isinstance(error, ValueError) else repr(error)


def _parse_work(fields: Mapping[str, Any], merged: Mapping[str, str]) -> Work | None:
    """Read one work object of the snapshot or the API; `None` if it has no publication year."""
    if fields["publication_year"] is None:
        return None
    location = fields.get("primary_location") or {}
    source = location.get("source") or {}
    topic = fields.get("primary_topic") or {}
    field = topic.get("field") or {}
    references = map(shorten_id, fields.get("referenced_works") or ())
    year, cited = int(fields["publication_year"]), int(fields.get("cited_by_count") or 0)
    for name, value, most in (
        ("publication_year", year, LAST_YEAR),
        ("cited_by_count", cited, MOST_CITATIONS),
    ):
        if not 0 <= value <= most:
            raise ValueError(f"{name} must lie in 0 to {most}, got {str(value)[:40]}")
    short = shorten_id(fields["id"])
    if parse_work_id(short) is None:
        raise ValueError(f"its id must read W and digits, got {short[:40]!r}")
    return Work(
        id=short,
        title=fields.get("title") or fields.get("display_name") or "",
        abstract=rebuild_abstract(fields.get("abstract_inverted_index") or {}),
        year=year,
        type=fields.get("type") or "",
        venue=shorten_id(source.get("id") or ""),
        field=field.get("display_name") or "",
        cited_by_count=cited,
        references=tuple(merged.get(short, short) for short in references),
    )
