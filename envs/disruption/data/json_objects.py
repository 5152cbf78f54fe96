"""The JSON objects of a file, each with its place: lines, an array, or pages of an API."""

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from tokengym.envs.core.errors import DataError

MOST_BYTES = 1 << 26
"""Longest line or item: a compressed file may hold one that no memory does."""

_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"
_BETWEEN = re.compile(r"[\s,]*")
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
    """Yield the objects of a file, and in their places why some cannot be read."""
    place = "0"
    try:
        with _open_unpacked(path) as file:
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
    """Return whether a file begins as JSON objects or an array do, or is packed and damaged."""
    try:
        with _open_unpacked(path) as file:
            return file.read(_CHUNK).removeprefix(_MARK).lstrip()[:1] in (b"{", b"[")
    except (OSError, EOFError, zlib.error):
        return True


def _open_unpacked(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")


def _results(value: object) -> list[object]:
    """Return the results of a page, or the value itself."""
    if isinstance(value, dict) and "id" not in value and isinstance(value.get("results"), list):
        found: list[object] = value["results"]
        return found
    return [value]


def _read_values(file: BinaryIO) -> Iterator[tuple[str, object]]:
    """Yield the values of a file with their places, or why one could not be read."""
    lines = ((k, line) for k, line in enumerate(_bounded_lines(file), start=1) if line != b"")
    first = next(lines, None)
    if first is None:
        return
    number, text = first
    if text is not None and (text.startswith(b"[") or text == b"{"):
        # `{` alone begins an object of several lines.
        rest = codecs.getreader("utf-8")(file, "surrogateescape")
        begun = text.decode("utf-8", "surrogateescape") + "\n"
        for nth, (at, value) in enumerate(_stream_values(begun, rest, number), start=1):
            yield f"{at}, item {nth}" if begun.startswith("[") else str(at), value
        return
    for at, line in chain([first], lines):
        place = str(at)
        if line is None:
            yield place, Damage(f"the line is longer than {MOST_BYTES >> 20} MiB")
            continue
        try:
            yield place, json.loads(line)
        except (ValueError, RecursionError) as error:
            yield place, Damage(f"not JSON: {error}", error)


def _bounded_lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines of a file without blanks, `None` for one that is too long to hold."""
    mark = _MARK
    while line := file.readline(MOST_BYTES):
        if len(line) < MOST_BYTES or line.endswith(b"\n"):
            yield line.removeprefix(mark).strip()
            mark = b""
            continue
        while (more := file.readline(MOST_BYTES)) and not more.endswith(b"\n"):
            pass
        yield None


def _stream_values(
    begun: str, rest: codecs.StreamReader, line: int
) -> Iterator[tuple[int, object]]:
    """Yield the items of an array, or values one after another, up to the first damage.

    Args:
        begun: text that has been read already.
        rest: what comes after it.
        line: the line on which `begun` begins.
    """
    decoder, text = json.JSONDecoder(), begun
    in_array = text.startswith("[")
    at = int(in_array)
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None
        line += text.count("\n", at, between.end())
        at = between.end()
        if at == len(text):
            text, at = rest.read(_CHUNK), 0
            if text:
                continue
            if in_array:
                yield line, Damage("the array is cut off")
            return
        if in_array and text[at] == "]":
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            more = rest.read(max(_CHUNK, len(text) - at)) if len(text) - at < MOST_BYTES else ""
            if more and isinstance(error, ValueError):  # it may only be cut off by what was read
                text, at = text[at:] + more, 0
                continue
            reason = f"not JSON, and nothing after it can be read: {error}"
            yield line, Damage(reason, error)
            return
        yield line, value
        line += text.count("\n", at, end)
        at = end
