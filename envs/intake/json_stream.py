"""Walking the values of a JSON file of any length one by one, each with its line."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from tokengym.envs.intake import files
from tokengym.envs.intake.names import repeated

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_BETWEEN = re.compile(r"[\s,]*")
_MOST_DIGITS = 300
_CHUNK = 1 << 16


class _Text(Protocol):
    """Source of the text."""

    def read(self, size: int, /) -> str: ...


class JsonValue(NamedTuple):
    """A value, or why it could not be read.

    Attributes:
        line: line it begins on, from 1.
        value: the value.
        reason: why it could not be read; empty if it could.
        cause: the error behind the reason, if there was one.
    """

    line: int
    value: object
    reason: str = ""
    cause: Exception | None = None


class JsonStream:
    """The items of an array, or values one after another; only the current one is in memory.

    Args:
        begun: text that has been read already; it begins with `[` where the items of an array are
            the values.
        rest: what comes after it.
        line: the line on which `begun` begins, from 1.
        longest: most characters of a value; `LONGEST_ROW` if 0.

    Attributes:
        in_array: whether the values are the items of an array.
    """

    def __init__(self, begun: str, rest: _Text, line: int, longest: int = 0) -> None:
        self.in_array = begun.startswith("[")
        self._text = begun
        self._at = int(self.in_array)
        self._end = self._at
        self._rest = rest
        self._line = line
        self._longest = longest or files.LONGEST_ROW
        self._decoder = json.JSONDecoder(parse_int=_whole, object_pairs_hook=_object)

    @property
    def text(self) -> str:
        """The text of the value that was yielded last."""
        return self._text[self._at : self._end]

    def __iter__(self) -> Iterator[JsonValue]:
        """Yield the values up to the closing bracket, or to the first that is not JSON."""
        while self._skip():
            line = self._line
            try:
                value, end = self._decode()
                self._end = end
            except RecursionError as error:
                yield JsonValue(line, None, "nested too deep", error)
                end = self._after()
            except ValueError as error:
                reason = f"not JSON, and nothing after it can be read: {error}"
                yield JsonValue(line, None, reason, error)
                return
            else:
                yield JsonValue(line, value)
            self._move(end)
        if self.in_array and self._at == len(self._text):
            yield JsonValue(self._line, None, "the array is cut off")

    def _skip(self) -> bool:
        """Go to the next value; return whether there is one."""
        while True:
            between = _BETWEEN.match(self._text, self._at)
            assert between is not None
            self._move(between.end())
            if self._at < len(self._text):
                return not (self.in_array and self._text[self._at] == "]")
            if not self._fill():
                return False

    def _decode(self) -> tuple[object, int]:
        """Return the value and where it ends.

        Raises:
            ValueError: if it is no JSON, or too long.
            RecursionError: if it is nested too deep.
        """
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except ValueError:
                # It may only be cut off by the end of what has been read.
                if len(self._text) - self._at >= self._longest:
                    raise ValueError(files.too_long(self._longest)) from None
                if not self._fill():
                    raise
                continue
            if end < len(self._text) or not self._fill():
                return value, end

    def _after(self) -> int:
        """Return where the value ends that begins with a bracket here."""
        while True:
            depth = 0
            for bracket in _BRACKETS.finditer(self._text, self._at):
                depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(bracket[0], 0)
                if depth <= 0:
                    return bracket.end()
            if len(self._text) - self._at >= self._longest or not self._fill():
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


def load_json(text: str | bytes) -> Any:
    """Return the value of a text of JSON.

    Raises:
        ValueError: if it is none, or an object in it names a field twice.
        RecursionError: if it is nested too deep.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the field {repeated(name for name, _ in pairs)!r} comes twice")
    return found


def _whole(digits: str) -> float:
    """Read a whole number; one that no field can take is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float("inf")
