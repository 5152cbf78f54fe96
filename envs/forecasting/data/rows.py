"""Reading files into rows with their places: CSV, JSON lines, JSON documents or Parquet.

Rows are read one at a time, so that the size of a file does not matter; only a JSON document that
holds its rows in a list inside an object is read whole. Files compressed by gzip are unpacked.
"""

import csv
import gzip
import io
import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple, TextIO, cast

from tokengym.envs.core.errors import DataError
from tokengym.envs.forecasting.data.fields import quoted
from tokengym.envs.forecasting.data.json_array import JsonArray
from tokengym.envs.forecasting.data.parquet import parquet_rows

_LISTS = ("questions", "results", "resolutions", "data")
"""Keys under which a JSON document may hold its rows."""

_DELIMITERS = ",;\t|"
_GZIP, _PARQUET = b"\x1f\x8b", b"PAR1"


class Found(NamedTuple):
    """A row of a file, or why there is none.

    Attributes:
        number: number of the row in the file, from 1, without a header.
        line: line it begins on, from 1; `None` where a format has no lines.
        row: the row; `None` if it could not be parsed.
        reason: why it could not be parsed.
    """

    number: int
    line: int | None
    row: dict[str, object] | None
    reason: str = ""


def read_rows(path: Path) -> Iterator[Found]:
    """Yield the rows of a file, whose first bytes tell its format.

    Raises:
        DataError: if the file cannot be read.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(path.open("rb"))
            start = file.read(4)
            file.seek(0)
            if start == _PARQUET:
                for number, row in enumerate(parquet_rows(path), start=1):
                    yield _found(number, None, row)
                return
            packed: IO[bytes] = file
            if start[:2] == _GZIP:
                packed = cast("IO[bytes]", stack.enter_context(gzip.open(file)))
            # A damaged row is one row: bytes that are no text are kept apart until it is parsed.
            text = io.TextIOWrapper(packed, "utf-8-sig", errors="surrogateescape", newline="")
            yield from _text_rows(stack.enter_context(text))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _text_rows(file: TextIO) -> Iterator[Found]:
    line, start = 1, file.read(1)
    while start and start.isspace():
        line += start == "\n"
        start = file.read(1)
    # An array may be one long line, so that no line of it is asked for.
    if start == "[":
        return _array(file, line)
    if start == "{":
        return _object(start + file.readline(), file, line)
    return _csv(start + file.readline(), file, line) if start else iter(())


def _csv(first: str, file: TextIO, line: int) -> Iterator[Found]:
    """Read a table, whose delimiter is the most frequent one of its first line."""
    delimiter = max(_DELIMITERS, key=first.count)
    reader = csv.reader(_prepend(first, file), delimiter=delimiter)
    header: list[str] | None = None
    begins, number = line, 0
    while True:
        # Cells that hold whole articles are longer than the csv module's default limit, which is
        # global to the process: it is put back as soon as a row is read.
        before = csv.field_size_limit(sys.maxsize)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Found(number + 1, begins, None, f"no CSV, nothing after it is read: {error}")
            return
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if header is None:
            header = [cell.strip() for cell in cells]
        elif cells:
            number += 1
            if len(cells) == len(header):
                values = (cell if cell.strip() else None for cell in cells)
                yield _found(number, begins, dict(zip(header, values, strict=True)))
            else:
                reason = f"other cells than the header has: {len(cells)}, not {len(header)}"
                yield Found(number, begins, None, reason)
        begins = line + reader.line_num


def _object(first: str, file: TextIO, line: int) -> Iterator[Found]:
    """Read JSON lines, or a document that holds its rows in a list."""
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        rest = file.read()
        try:
            document = json.loads(first + rest)
        except (ValueError, RecursionError):
            return _lines(first, io.StringIO(rest, newline=""), line)
        return _document(document, first + rest, line)
    second = next((other for other in file if other.strip()), None)
    if second is None:
        return _document(document, first, line)
    return _lines(first, _prepend(second, file), line)


def _document(document: dict[str, object], content: str, line: int) -> Iterator[Found]:
    for name in _LISTS:
        if isinstance(document.get(name), list):
            common = {key: value for key, value in document.items() if key != name}
            key = json.dumps(name)
            start = content.index("[", content.index(key) + len(key)) + 1
            line += content.count("\n", 0, start)
            return _array(io.StringIO(content[start:], newline=""), line, common)
    return iter([_found(1, line, document)])


def _lines(first: str, rest: "Iterator[str] | TextIO", line: int) -> Iterator[Found]:
    number = 0
    for at, text in enumerate(_prepend(first, rest), start=line):
        if text.strip():
            number += 1
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                yield Found(number, at, None, f"not JSON: {error}")
            else:
                yield _found(number, at, value)


def _array(rest: TextIO, line: int, common: dict[str, object] | None = None) -> Iterator[Found]:
    for number, item in enumerate(JsonArray(rest, line), start=1):
        if item.reason:
            yield Found(number, item.line, None, item.reason)
        else:
            yield _found(number, item.line, item.value, common)


def _prepend(first: str, rest: "Iterator[str] | TextIO") -> Iterator[str]:
    yield first
    yield from rest


def _found(
    number: int, line: int | None, value: object, common: dict[str, object] | None = None
) -> Found:
    if isinstance(value, dict):
        row = {**(common or {}), **value}
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return Found(number, line, None, "not UTF-8 text")
        except RecursionError:
            return Found(number, line, None, "nested too deep")
        return Found(number, line, row)
    return Found(number, line, None, f"a row must be an object, got {quoted(value)}")
