"""Reading files into rows with their places: CSV, JSON lines, JSON documents or Parquet.

Rows are read one at a time, so that the size of a file does not matter; one document of JSON that
holds its rows in a list inside an object is held whole, up to `LONGEST_FILE`. Files compressed by
gzip are unpacked.
"""

import codecs
import csv
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake import files
from tokengym.envs.intake.files import bounded_lines, open_unpacked, too_long
from tokengym.envs.intake.json_stream import JsonStream, JsonValue, load_json
from tokengym.envs.intake.names import repeated
from tokengym.envs.intake.parquet import parquet_rows
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.tables import csv_rows

_LISTS = ("questions", "results", "resolutions", "data")
"""Keys under which an object may hold rows."""
_OWN = frozenset({"prompt", "question", "title", "openalex_id", "publication_year"})
"""Fields of an object that is a row itself, whatever lists it holds."""
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_PARQUET = b"PAR1"
_CHUNK = 1 << 16


class RowResult(NamedTuple):
    """A row of a file, or the reason if there is none.

    Attributes:
        number: number of the row in the file, from 1, without a header.
        line: line it begins on, from 1; `None` where a format has no lines.
        row: the row; `None` if it could not be parsed.
        reason: why it could not be parsed.
        cause: the error behind the reason, if there was one.
        inside: whether it is one of several rows of an array or an object.
    """

    number: int
    line: int | None
    row: dict[str, Any] | None
    reason: str = ""
    cause: Exception | None = None
    inside: bool = False


class ReadObject(NamedTuple):
    """One row of a file and where it begins, as `file:line`."""

    where: str
    fields: dict[str, Any]


def read_rows(path: Path, *, common: bool = True, tables: bool = True) -> Iterator[RowResult]:
    """Yield the rows of a file, whose first bytes determine its format.

    Args:
        path: the file.
        common: whether the fields of an object that holds rows are also theirs.
        tables: whether CSV and Parquet are read too, not JSON alone.

    Raises:
        DataError: if the file cannot be read, or names a column twice.
    """
    last: int | None = None
    try:
        with ExitStack() as stack:
            file = stack.enter_context(open_unpacked(path))
            start = file.read(len(_PARQUET))
            file.seek(0)
            if start == _PARQUET and tables:
                for number, row in enumerate(parquet_rows(path), start=1):
                    yield _result_of(number, None, row)
                return
            # A damaged row is one row: bytes that are no text are kept apart until it is parsed.
            text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
            for result in _text_rows(stack.enter_context(text), common, tables):
                last = result.line
                yield result
    except (OSError, EOFError, zlib.error) as error:
        after = "" if last is None else f" after line {last}"
        raise DataError(f"{path}: cannot be read{after}: {error}") from error
    except csv.Error as error:
        raise DataError(f"{path}: {error}") from error


def rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a file, JSON or Parquet, and where each stands, for messages.

    Raises:
        DataError: if the file cannot be read, or a row is damaged.
    """
    for read in read_rows(path, common=False, tables=path.suffix == ".parquet"):
        where = f"{path}, line {read.line}" if read.line else f"{path}, row {read.number}"
        if read.row is None:
            raise DataError(f"{where}: {read.reason}")
        yield where, read.row


def read_objects(
    path: Path, skipped: list[str] | None = None, *, tables: bool = False
) -> Iterator[ReadObject]:
    """Yield the objects of a file of JSON with their places, as lines, arrays or pages of an API.

    Args:
        path: the file.
        tables: whether the rows of CSV and Parquet are objects too.
        skipped: collects what is wrong with damaged rows and files, which are then skipped. After
            damage inside an array the rest of the file cannot be read.

    Raises:
        DataError: if a row or the file is damaged and `skipped` is `None`; it names the line.
    """
    try:
        for result in read_rows(path, common=False, tables=tables):
            where = f"{path}:{result.line}" if result.line else f"{path}"
            where += f", row {result.number}" if result.inside or not result.line else ""
            if result.row is None:
                refuse(f"{where}: {result.reason}", skipped, result.cause)
            else:
                yield ReadObject(where, result.row)
    except DataError as error:
        refuse(str(error), skipped, error)


def begins_as_json(path: Path) -> bool:
    """Return whether a file begins like JSON objects or an array, or is packed and damaged."""
    try:
        with open_unpacked(path) as file:
            return file.read(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"[")
    except (OSError, EOFError, zlib.error):
        return True


def refuse(message: str, skipped: list[str] | None, cause: Exception | None = None) -> None:
    """Raise a `DataError`, or append the message to `skipped` if there is such a list.

    Raises:
        DataError: if `skipped` is `None`.
    """
    if skipped is None:
        raise DataError(message) from cause
    skipped.append(message)


def _text_rows(file: TextIO, common: bool, tables: bool) -> Iterator[RowResult]:
    line, start = 1, file.read(1)
    while start and start.isspace():
        line += start == "\n"
        start = file.read(1)
    # An array may be one long line, so that no line of it is asked for.
    if start == "[":
        return _values(JsonStream(start, file, line), common)
    lines = bounded_lines(file)
    first = next(lines, "")
    first = first if first is None else start + first
    if start == "{":
        return _objects(first, lines, file, line, common)
    if tables:
        return _table(chain([first], lines), line) if start else iter(())
    return _lines(chain([first], lines), line, common)


def _table(lines: Iterable[str | None], line: int) -> Iterator[RowResult]:
    """Read a table whose first line is its header."""
    rows = csv_rows(map(_held, lines), line)
    number = 0
    begins = line
    try:
        _, header = next(rows, (line, []))
        header = [cell.strip() for cell in header]
        if repeated(header):
            raise DataError(f"line {line}: the column {repeated(header)!r} comes twice")
        for begins, cells in rows:
            number += 1
            if len(cells) == len(header):
                values = (cell if cell.strip() else None for cell in cells)
                yield _result_of(number, begins, dict(zip(header, values, strict=True)))
            else:
                reason = f"other cells than the header has: {len(cells)}, not {len(header)}"
                yield RowResult(number, begins, None, reason)
    except csv.Error as error:
        reason = f"not CSV, nothing after it is read: {error}"
        yield RowResult(number + 1, begins, None, reason, error)


def _held(line: str | None) -> str:
    """Return a line of a table.

    Raises:
        csv.Error: if it was too long to hold.
    """
    if line is None:
        raise csv.Error(f"a line is {too_long()}")
    return line


def _objects(
    first: str | None, lines: Iterator[str | None], file: TextIO, line: int, common: bool
) -> Iterator[RowResult]:
    """Read JSON lines, or objects that go over several lines."""
    rows = _lines(chain([first], lines), line, common)
    begun = next(rows, None)
    if begun is None or begun.line != line or not isinstance(begun.cause, ValueError):
        return iter(()) if begun is None else chain([begun], rows)
    stream = JsonStream(first or "", file, line, files.LONGEST_FILE)
    values = iter(stream)
    value = next(values)
    if value.reason:
        # The first of many lines is damaged.
        file.seek(0)
        return _lines(bounded_lines(file), 1, common)
    return _values(stream, common, chain([value], values))


def _lines(lines: Iterable[str | None], line: int, common: bool) -> Iterator[RowResult]:
    number = 0
    for at, text in enumerate(lines, start=line):
        if text is None:
            number += 1
            yield RowResult(number, at, None, f"the line is {too_long()}")
        elif text.strip():
            try:
                value = load_json(text)
            except (ValueError, RecursionError) as error:
                number += 1
                yield RowResult(
                    number, at, None, f"not JSON: {text.strip()[:60]!r}: {error}", error
                )
                continue
            for row in _rows_of(value, text, at, common, pages=True):
                number += 1
                yield row._replace(number=number)


def _values(
    stream: JsonStream, common: bool, values: Iterable[JsonValue] | None = None
) -> Iterator[RowResult]:
    """Read the values of a stream; objects that are no items of an array may hold rows."""
    number = 0
    for one in stream if values is None else values:
        if one.reason:
            number += 1
            yield RowResult(number, one.line, None, one.reason, one.cause, inside=True)
            continue
        text = "" if stream.in_array else stream.text
        for row in _rows_of(one.value, text, one.line, common, pages=not stream.in_array):
            number += 1
            yield row._replace(number=number, inside=row.inside or stream.in_array)


def _rows_of(
    value: object, text: str, line: int, common: bool, *, pages: bool
) -> Iterator[RowResult]:
    """Yield the rows that a value holds, or itself.

    Args:
        value: the value.
        text: its text.
        line: line the text begins on.
        common: whether the other fields of an object that holds rows are also theirs.
        pages: whether it may hold rows.
    """
    held = value if pages and isinstance(value, dict) and not _OWN & value.keys() else {}
    name = next((name for name in _LISTS if isinstance(held.get(name), list)), None)
    if name is None:
        yield _result_of(0, line, value, text)
        return
    shared = {key: item for key, item in held.items() if key != name} if common else {}
    key = json.dumps(name)
    start = text.index("[", text.index(key) + len(key))
    line += text.count("\n", 0, start)
    for item in JsonStream(text[start:], io.StringIO(), line):
        value = {**shared, **item.value} if isinstance(item.value, dict) else item.value
        yield _result_of(0, item.line, value, text)._replace(inside=True)


def _result_of(number: int, line: int | None, value: object, text: str = "") -> RowResult:
    if not isinstance(value, dict):
        return RowResult(number, line, None, f"a row must be an object, got {quoted(value)}")
    # Only bytes that are no text, and escapes of half a character, make what cannot be encoded.
    if not text or not text.isascii() or _HALF.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            return RowResult(number, line, None, "not UTF-8 text", error)
        except RecursionError as error:
            return RowResult(number, line, None, "nested too deep", error)
    return RowResult(number, line, value)
