"""Reading data files part by part: a damaged part is refused by name, or skipped and noted."""

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.envs.core.errors import DataError


class Line(NamedTuple):
    """One JSON object of a file and where it stands, as `file:line`."""

    where: str
    fields: dict[str, Any]


def refuse(message: str, skipped: list[str] | None, cause: Exception | None = None) -> None:
    """Note what is wrong with a part in `skipped`, or refuse it if there is no such list.

    Raises:
        DataError: if `skipped` is `None`.
    """
    if skipped is None:
        raise DataError(message) from cause
    skipped.append(message)


def json_lines(path: Path, skipped: list[str] | None = None) -> Iterator[Line]:
    """Yield the JSON objects of a file of JSON lines, gzipped if its name ends in `.gz`.

    Args:
        path: the file. Empty lines are passed over.
        skipped: where to note damaged lines and files, which are then passed over.

    Raises:
        DataError: if a line or the file is damaged and `skipped` is `None`; it names the line.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                where = f"{path}:{number}"
                if not line.strip():
                    continue
                try:
                    fields = json.loads(line)
                except ValueError as error:
                    refuse(f"{where}: not JSON: {error}", skipped, error)
                    continue
                if not isinstance(fields, dict):
                    refuse(f"{where}: a JSON object is expected, got {line[:40]!r}", skipped)
                    continue
                yield Line(where, fields)
    except (OSError, EOFError, zlib.error) as error:
        refuse(f"{path}: unreadable after line {number}: {error}", skipped, error)
