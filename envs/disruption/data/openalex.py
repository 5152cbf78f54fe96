"""OpenAlex snapshots: gzipped JSON lines under `works/updated_date=*/`, and merged ids."""

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.data.parts import json_lines, refuse
from tokengym.envs.disruption.data.work import Work


def read_snapshot(folder: Path | str, skipped: list[str] | None = None) -> Iterator[Work]:
    """Yield the works of a snapshot, newest parts first.

    Ids that were merged into others are replaced, in references too, and merged works left out.
    A work that occurs in several parts, as after an update on top of an older copy, is taken from
    the newest.

    Args:
        folder: what holds `works/` and, if there are any, `merged_ids/works/`, at any depth.
        skipped: where to note damaged lines and parts, which are then passed over.

    Raises:
        DataError: if there are no parts, or one is damaged and `skipped` is `None`.
    """
    root = Path(folder)
    yield from read_parts(snapshot_parts(root), read_merged_ids(root, skipped), skipped)


def snapshot_parts(root: Path) -> list[Path]:
    """Return the parts of a snapshot, newest first.

    Raises:
        DataError: if there are none.
    """
    parts = sorted(root.glob("**/works/updated_date=*/*.gz"), key=_date_and_name, reverse=True)
    if not parts:
        raise DataError(f"{root} holds no works/updated_date=*/*.gz")
    return parts


def merged_id_files(root: Path) -> list[Path]:
    """Return the files of a snapshot that tell which ids were merged."""
    return sorted(root.glob("**/merged_ids/works/*.csv.gz"))


def read_parts(
    parts: Iterable[Path], merged: Mapping[str, str], skipped: list[str] | None = None
) -> Iterator[Work]:
    """Yield the works of files of JSON lines, each id once, from the first part that holds it.

    Args:
        parts: the files.
        merged: ids that were merged into others.
        skipped: where to note damaged lines and parts, which are then passed over.

    Raises:
        DataError: if a part is damaged and `skipped` is `None`.
    """
    seen: set[str] = set()
    for part in parts:
        for where, fields in json_lines(part, skipped):
            try:
                work = work_of(fields, merged)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                refuse(f"{where}: not a work: {error!r}", skipped, error)
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
    for path in merged_id_files(root):
        try:
            with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file):
                    step[short_id(row["id"])] = short_id(row["merge_into_id"])
        except (OSError, EOFError, zlib.error, KeyError, csv.Error) as error:
            refuse(f"{path}: not a list of merged ids: {error!r}", skipped, error)
    final = {}
    for old in step:
        new, path_so_far = step[old], {old}
        while new in step and new not in path_so_far:
            path_so_far.add(new)
            new = step[new]
        final[old] = new
    return final


def work_of(fields: Mapping[str, Any], merged: Mapping[str, str]) -> Work | None:
    """Read one work object of the snapshot or the API; `None` if it has no publication year.

    Args:
        fields: the object.
        merged: ids that were merged into others, which replace them among the references.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: if the object is no work.
    """
    if fields["publication_year"] is None:
        return None
    location = fields.get("primary_location") or {}
    source = location.get("source") or {}
    topic = fields.get("primary_topic") or {}
    field = topic.get("field") or {}
    return Work(
        id=short_id(fields["id"]),
        title=fields.get("title") or fields.get("display_name") or "",
        abstract=abstract_of(fields.get("abstract_inverted_index") or {}),
        year=int(fields["publication_year"]),
        type=fields.get("type") or "",
        venue=short_id(source.get("id") or ""),
        field=field.get("display_name") or "",
        cited_by_count=int(fields.get("cited_by_count") or 0),
        references=tuple(
            merged.get(short, short)
            for short in map(short_id, fields.get("referenced_works") or ())
        ),
    )


def abstract_of(inverted_index: Mapping[str, list[int]]) -> str:
    """Rebuild an abstract from the positions of its words."""
    words = [(place, word) for word, places in inverted_index.items() for place in places]
    return " ".join(word for _, word in sorted(words))


def short_id(address: str) -> str:
    """`W2741809807` of `https://openalex.org/W2741809807`."""
    return address.rpartition("/")[2].upper()


def _date_and_name(part: Path) -> tuple[str, str]:
    return part.parent.name, part.name
