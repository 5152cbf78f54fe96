"""Walking a JSON array of any length item by item, each with its line."""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple, TextIO

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_BETWEEN = " \t\r\n,"
_MOST_DIGITS = 300
_CHUNK = 1 << 16


class Item(NamedTuple):
    """An item of an array, or why it could not be read.

    Attributes:
        line: line it begins on, from 1.
        value: the item.
        reason: why it could not be read; empty if it could.
    """

    line: int
    value: object
    reason: str = ""


class JsonArray:
    """The items of an array; only those under way are held in memory.

    Args:
        rest: the file, read up to and with the opening bracket.
        line: line that it has been read to.
    """

    def __init__(self, rest: TextIO, line: int) -> None:
        self._text = ""
        self._at = 0
        self._rest = rest
        self._line = line
        self._decoder = json.JSONDecoder(parse_int=_whole)

    def __iter__(self) -> Iterator[Item]:
        """Yield the items up to the closing bracket, or to the first that is no JSON."""
        while self._skip():
            line = self._line
            try:
                value, end = self._decode()
            except RecursionError:
                yield Item(line, None, "nested too deep")
                end = self._after()
            except ValueError as error:
                yield Item(line, None, f"not JSON, and nothing after it can be read: {error}")
                return
            else:
                yield Item(line, value)
            self._move(end)

    def _skip(self) -> bool:
        """Go to the next item; return whether there is one."""
        while True:
            end = self._at
            while end < len(self._text) and self._text[end] in _BETWEEN:
                end += 1
            self._move(end)
            if self._at < len(self._text):
                return self._text[self._at] != "]"
            if not self._fill():
                return False

    def _decode(self) -> tuple[object, int]:
        """Return the item and where it ends.

        Raises:
            ValueError: if it is no JSON.
            RecursionError: if it is nested too deep.
        """
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                # It may only be cut off by the end of what has been read.
                if not self._fill():
                    raise
                continue
            if end < len(self._text) or not self._fill():
                return value, end

    def _after(self) -> int:
        """Return where the value ends that begins with a bracket here."""
        while True:
            depth = 0
            for found in _BRACKETS.finditer(self._text, self._at):
                depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
                if depth <= 0:
                    return found.end()
            if not self._fill():
                return len(self._text)

    def _move(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _fill(self) -> bool:
        """Read on, twice as far each time; return whether there was more."""
        more = self._rest.read(max(_CHUNK, len(self._text) - self._at))
        if more:
            self._text, self._at = self._text[self._at :] + more, 0
        return bool(more)


def _whole(digits: str) -> float:
    """Read a whole number; one that no field can take is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("inf")
