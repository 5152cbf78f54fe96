"""The JSON objects of a file, each with its place: lines, an array, or pages of an API."""

import codecs
import json
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.files import bounded_lines, open_unpacked, too_long
from tokengym.envs.intake.json_stream import JsonStream

_MARK = b"\xef\xbb\xbf"
_CHUNK = 1 << 16


class JsonObject(NamedTuple):
    """One JSON object of a file and where it begins, as `file:line`."""

    where: str
    fields: dict[str, Any]


class Damage(NamedTuple):
    """Why there is no object at a place of a file."""

    reason: str
    cause: Exception | None = None


def refuse(message: str, skipped: list[str] | None, cause: Exception | None = None) -> None:
    """Raise a `DataError`, or append the message to `skipped` if there is such a list.

    Raises:
        DataError: if `skipped` is `None`.
    """
    if skipped is None:
        raise DataError(message) from cause
    skipped.append(message)


def read_objects(path: Path, skipped: list[str] | None = None) -> Iterator[JsonObject]:
    """Yield the objects of a file, gzipped or not, whatever its name.

    The file has a JSON object a line, or is one array of objects, or is a page of an API or several
    one after another, `{"meta": …, "results": […]}`, whose results are the objects. Empty lines are
    ignored.

    Args:
        path: the file.
        skipped: collects what is wrong with damaged lines and files, which are then skipped. After
            damage inside an array the rest of the file cannot be read.

    Raises:
        DataError: if a line or the file is damaged and `skipped` is `None`; it names the line.
    """
    for one in scan_objects(path):
        if isinstance(one, Damage):
            refuse(one.reason, skipped, one.cause)
        else:
            yield one


def scan_objects(path: Path) -> Iterator[JsonObject | Damage]:
    """Yield the objects of a file, and for unreadable ones the reason."""
    place = "0"
    try:
        with open_unpacked(path) as file:
            for place, value in _read_values(file):
                where = f"{path}:{place}"
                if isinstance(value, Damage):
                    yield value._replace(reason=f"{where}: {value.reason}")
                    continue
                for nth, one in enumerate(_results(value), start=1):
                    at = where if one is value else f"{where}, result {nth}"
                    if isinstance(one, dict):
                        yield JsonObject(at, one)
                    else:
                        yield Damage(f"{at}: a JSON object is expected, got {repr(one)[:40]}")
    except (OSError, EOFError, zlib.error) as error:
        yield Damage(f"{path}: unreadable after line {place}: {error}", error)


def begins_as_json(path: Path) -> bool:
    """Return whether a file begins like JSON objects or an array, or is packed and damaged."""
    try:
        with open_unpacked(path) as file:
            return file.read(_CHUNK).removeprefix(_MARK).lstrip()[:1] in (b"{", b"[")
    except (OSError, EOFError, zlib.error):
        return True


def _results(value: object) -> list[object]:
    """Return the results of a page, or the value itself."""
    if isinstance(value, dict) and "id" not in value and isinstance(value.get("results"), list):
        found: list[object] = value["results"]
        return found
    return [value]


def _read_values(file: IO[bytes]) -> Iterator[tuple[str, object]]:
    """Yield the values of a file with their places, or why one could not be read."""
    lines = ((k, line) for k, line in enumerate(_stripped_lines(file), start=1) if line != b"")
    first = next(lines, None)
    if first is None:
        return
    number, text = first
    if text is not None and (text.startswith(b"[") or text == b"{"):
        # `{` alone begins an object of several lines.
        rest = codecs.getreader("utf-8")(file, "surrogateescape")
        begun = text.decode("utf-8", "surrogateescape") + "\n"
        for nth, one in enumerate(JsonStream(begun, rest, number), start=1):
            place = f"{one.line}, item {nth}" if begun.startswith("[") else str(one.line)
            yield place, Damage(one.reason, one.cause) if one.reason else one.value
        return
    for at, line in chain([first], lines):
        place = str(at)
        if line is None:
            yield place, Damage(f"the line is {too_long()}")
            continue
        try:
            yield place, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield place, Damage(f"not JSON: {error}", error)


def _stripped_lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """Yield the lines of a file without blanks, `None` for one that is too long to hold."""
    mark = _MARK
    for line in bounded_lines(file):
        yield line and line.removeprefix(mark).strip()
        mark = b""
