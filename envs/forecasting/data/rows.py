"""Reading files into rows with their places: CSV, JSON lines, JSON documents or Parquet.

Rows are read one at a time, so that the size of a file does not matter; only a JSON document that
holds its rows in a list inside an object is read whole, up to `LONGEST_FILE`. Files compressed by
gzip are unpacked.
"""

import csv
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TextIO

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.files import LONGEST_ROW, bounded_lines, open_unpacked, read_whole, too_long
from tokengym.envs.core.json_stream import JsonStream
from tokengym.envs.forecasting.data.fields import quoted
from tokengym.envs.forecasting.data.parquet import parquet_rows

_LISTS = ("questions", "results", "resolutions", "data")
"""Keys under which a JSON document may hold its rows."""

_DELIMITERS = ",;\t|"
_PARQUET = b"PAR1"


class RowResult(NamedTuple):
    """A row of a file, or the reason if there is none.

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


def read_rows(path: Path) -> Iterator[RowResult]:
    """Yield the rows of a file, whose first bytes determine its format.

    Raises:
        DataError: if the file cannot be read.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(open_unpacked(path))
            start = file.read(len(_PARQUET))
            file.seek(0)
            if start == _PARQUET:
                for number, row in enumerate(parquet_rows(path), start=1):
                    yield _result_of(number, None, row)
                return
            # A damaged row is one row: bytes that are no text are kept apart until it is parsed.
            text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
            yield from _text_rows(stack.enter_context(text))
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error


def _text_rows(file: TextIO) -> Iterator[RowResult]:
    line, start = 1, file.read(1)
    while start and start.isspace():
        line += start == "\n"
        start = file.read(1)
    # An array may be one long line, so that no line of it is asked for.
    if start == "[":
        return _array(file, line)
    lines = bounded_lines(file)
    first = next(lines, "")
    first = first if first is None else start + first
    if start == "{":
        return _object(first, file, line)
    return _csv(first, lines, line) if start else iter(())


def _csv(first: str | None, lines: Iterator[str | None], line: int) -> Iterator[RowResult]:
    """Read a table, whose delimiter is the most frequent one of its first line."""
    delimiter = max(_DELIMITERS, key=(first or "").count)
    reader = csv.reader(_of_a_table(chain([first], lines)), delimiter=delimiter)
    header: list[str] | None = None
    begins, number = line, 0
    while True:
        # Cells that hold whole articles are longer than the csv module's default limit, which is
        # global to the process: it is put back as soon as a row is read.
        before = csv.field_size_limit(LONGEST_ROW)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield RowResult(number + 1, begins, None, f"not CSV, nothing after it is read: {error}")
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
                yield _result_of(number, begins, dict(zip(header, values, strict=True)))
            else:
                reason = f"other cells than the header has: {len(cells)}, not {len(header)}"
                yield RowResult(number, begins, None, reason)
        begins = line + reader.line_num


def _object(first: str | None, file: TextIO, line: int) -> Iterator[RowResult]:
    """Read JSON lines, or a document that holds its rows in a list."""
    if first is None:
        return _lines(chain([first], bounded_lines(file)), line)
    try:
        document = json.loads(first)
    except (ValueError, RecursionError):
        try:
            content = read_whole(file, first)
            document = json.loads(content)
        except (OSError, ValueError, RecursionError):
            file.seek(0)
            return _lines(bounded_lines(file), 1)
        return _document(document, content, line)
    lines = bounded_lines(file)
    second = next((other for other in lines if other is None or other.strip()), "")
    if second == "":
        return _document(document, first, line)
    return _lines(chain([first, second], lines), line)


def _document(document: dict[str, object], content: str, line: int) -> Iterator[RowResult]:
    for name in _LISTS:
        if isinstance(document.get(name), list):
            common = {key: value for key, value in document.items() if key != name}
            key = json.dumps(name)
            start = content.index("[", content.index(key) + len(key)) + 1
            line += content.count("\n", 0, start)
            return _array(io.StringIO(content[start:], newline=""), line, common)
    return iter([_result_of(1, line, document)])


def _lines(lines: Iterable[str | None], line: int) -> Iterator[RowResult]:
    number = 0
    for at, text in enumerate(lines, start=line):
        if text is None or text.strip():
            number += 1
            if text is None:
                yield RowResult(number, at, None, f"the line is {too_long()}")
                continue
            try:
                value = json.loads(text)
            except (ValueError, RecursionError) as error:
                yield RowResult(number, at, None, f"not JSON: {error}")
            else:
                yield _result_of(number, at, value)


def _array(rest: TextIO, line: int, common: dict[str, object] | None = None) -> Iterator[RowResult]:
    for number, item in enumerate(JsonStream("[", rest, line), start=1):
        if item.reason:
            yield RowResult(number, item.line, None, item.reason)
        else:
            yield _result_of(number, item.line, item.value, common)


def _of_a_table(lines: Iterable[str | None]) -> Iterator[str]:
    """Yield lines up to one that is too long.

    Raises:
        csv.Error: there.
    """
    for text in lines:
        if text is None:
            raise csv.Error(f"a line is {too_long()}")
        yield text


def _result_of(
    number: int, line: int | None, value: object, common: dict[str, object] | None = None
) -> RowResult:
    if isinstance(value, dict):
        row = {**(common or {}), **value}
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return RowResult(number, line, None, "not UTF-8 text")
        except RecursionError:
            return RowResult(number, line, None, "nested too deep")
        return RowResult(number, line, row)
    return RowResult(number, line, None, f"a row must be an object, got {quoted(value)}")
