"""JSON lines: any objects, and papers with the fields of `Paper`."""

import dataclasses
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.disruption.paper import FirstYear, Paper, ReferenceFacts

MOST_BYTES = 1 << 26
"""Longest line: a compressed file may hold one that no memory does."""


class Line(NamedTuple):
    """One JSON object of a file and where it stands, as `file:line`."""

    where: str
    fields: dict[str, Any]


def refuse(message: str, skipped: list[str] | None, cause: Exception | None = None) -> None:
    """Raise a `DataError`, or append the message to `skipped` if there is such a list.

    Raises:
        DataError: if `skipped` is `None`.
    """
    if skipped is None:
        raise DataError(message) from cause
    skipped.append(message)


def read_lines(path: Path, skipped: list[str] | None = None) -> Iterator[Line]:
    """Yield the JSON objects of a file of JSON lines, gzipped if its name ends in `.gz`.

    Args:
        path: the file; empty lines are ignored.
        skipped: collects what is wrong with damaged lines and files, which are then skipped.

    Raises:
        DataError: if a line or the file is damaged and `skipped` is `None`; it names the line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(_bounded_lines(file), start=1):
                where = f"{path}:{number}"
                if line is None:
                    refuse(f"{where}: the line is longer than {MOST_BYTES >> 20} MiB", skipped)
                    continue
                if not line.strip():
                    continue
                try:
                    fields = json.loads(line)
                except (ValueError, RecursionError) as error:
                    refuse(f"{where}: not JSON: {error}", skipped, error)
                    continue
                if not isinstance(fields, dict):
                    refuse(f"{where}: a JSON object is expected, got {line[:40]!r}", skipped)
                    continue
                yield Line(where, fields)
    except (OSError, EOFError, zlib.error) as error:
        refuse(f"{path}: unreadable after line {number}: {error}", skipped, error)


def _bounded_lines(file: BinaryIO | gzip.GzipFile) -> Iterator[bytes | None]:
    """Yield the lines of a file, `None` for one that is too long to hold."""
    while line := file.readline(MOST_BYTES):
        if len(line) < MOST_BYTES or line.endswith(b"\n"):
            yield line
            continue
        while (more := file.readline(MOST_BYTES)) and not more.endswith(b"\n"):
            pass
        yield None


def read_papers(path: Path | str, skipped: list[str] | None = None) -> Iterator[Paper]:
    """Yield the papers of a file written by `write_papers` or by hand, gzipped or not.

    Args:
        path: the file.
        skipped: collects what is wrong with damaged records, which are then skipped.

    Raises:
        DataError: if a record is damaged and `skipped` is `None`; it names the line.
    """
    for where, fields in read_lines(Path(path), skipped):
        try:
            for name, kind in (("references", ReferenceFacts), ("first_year", FirstYear)):
                if fields.get(name) is not None:
                    fields[name] = kind(**fields[name])
            windows = fields.get("cd_by_window") or {}
            fields["cd_by_window"] = tuple((int(years), cd) for years, cd in windows.items())
            yield Paper(**fields)
        except (DataError, TypeError, ValueError, AttributeError, OverflowError) as error:
            refuse(f"{where}: {error}", skipped, error)


def write_papers(path: Path | str, papers: Iterable[Paper]) -> int:
    """Write papers and return how many. The file appears only once it is complete."""
    target = Path(path)
    part = target.with_name(target.name + ".part")
    count = 0
    with part.open("w", encoding="utf-8") as file:
        for paper in papers:
            fields = dataclasses.asdict(paper) | {"cd_by_window": dict(paper.cd_by_window)}
            file.write(json.dumps(fields, ensure_ascii=False) + "\n")
            count += 1
    part.replace(target)
    return count
