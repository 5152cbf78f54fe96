"""Reading files into rows with their line numbers: CSV, JSON lines, or one JSON document."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tokengym.envs.core.tables import csv_rows, read_text
from tokengym.envs.forecasting.data.fields import quoted

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_MOST_DIGITS = 300
_LISTS = ("questions", "results", "resolutions")
"""Keys under which a JSON document may hold its rows."""


class Found(NamedTuple):
    """A row of a file, or why there is none.

    Attributes:
        line: line it begins on, from 1.
        row: the row; `None` if it could not be parsed.
        reason: why it could not be parsed.
    """

    line: int
    row: dict[str, object] | None
    reason: str = ""


def read_rows(path: Path) -> Iterator[Found]:
    """Yield the rows of a file: CSV, JSON lines or one document, by its first character.

    Raises:
        DataError: if the file cannot be read as text.
    """
    content = read_text(path, damaged="surrogateescape")  # a damaged row is one row
    start = content.lstrip()[:1]
    if start == "[":
        return _array(content, content.index("["))
    if start == "{":
        return _object(content)
    return _csv(content)


def _csv(content: str) -> Iterator[Found]:
    rows = csv_rows(content)
    _, header = next(rows, (0, []))
    for line, cells in rows:
        if len(cells) == len(header):
            yield _found(line, dict(zip(header, cells, strict=True)))
        else:
            yield Found(line, None, f"{len(cells)} cells where the header has {len(header)}")


def _object(content: str) -> Iterator[Found]:
    """Read JSON lines, or a document that holds its rows in a list."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _lines(content)
    for name in _LISTS:
        if isinstance(document.get(name), list):
            common = {key: value for key, value in document.items() if key != name}
            key = json.dumps(name)
            start = content.index("[", content.index(key) + len(key))
            return _array(content, start, common)
    return iter([Found(1, document)])


def _lines(content: str) -> Iterator[Found]:
    for number, line in enumerate(content.split("\n"), start=1):
        if line.strip():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError) as error:
                yield Found(number, None, f"not JSON: {error}")
            else:
                yield _found(number, value)


def _array(content: str, start: int, common: dict[str, object] | None = None) -> Iterator[Found]:
    """Walk a JSON array item by item, so that each has its line."""
    decoder = json.JSONDecoder(parse_int=_whole)
    at = start + 1
    line = content.count("\n", 0, at) + 1
    while True:
        begin = _skip(content, at)
        line += content.count("\n", at, begin)
        if begin >= len(content) or content[begin] == "]":
            return
        try:
            value, at = decoder.raw_decode(content, begin)
        except RecursionError:
            yield Found(line, None, "nested too deep")
            at = _after(content, begin)
        except ValueError as error:
            yield Found(line, None, f"not JSON, and nothing after it can be read: {error}")
            return
        else:
            yield _found(line, value, common)
        line += content.count("\n", begin, at)


def _whole(digits: str) -> float:
    """Read a whole number; one that no field can take is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("inf")


def _after(content: str, begin: int) -> int:
    """Return where the value ends that begins with a bracket at `begin`."""
    depth = 0
    for found in _BRACKETS.finditer(content, begin):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth <= 0:
            return found.end()
    return len(content)


def _skip(content: str, at: int) -> int:
    while at < len(content) and content[at] in " \t\r\n,":
        at += 1
    return at


def _found(line: int, value: object, common: dict[str, object] | None = None) -> Found:
    if isinstance(value, dict):
        row = {**(common or {}), **value}
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return Found(line, None, "not UTF-8 text")
        except RecursionError:
            return Found(line, None, "nested too deep")
        return Found(line, row)
    return Found(line, None, f"a row must be an object, got {quoted(value)}")
