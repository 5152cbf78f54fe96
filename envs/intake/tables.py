"""Reading a user's text files and CSV tables. Every error names file, line and reason."""

import csv
import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeVar

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.files import LONGEST_ROW, open_unpacked, read_whole
from tokengym.envs.intake.names import name_unknown, repeated
from tokengym.envs.intake.numbers import is_missing, read_number, whole_number
from tokengym.envs.intake.text import clean_line

Source = str | Path
"""The path of a file."""
T = TypeVar("T")

MOST_WHOLE = 1_000_000
"""Largest whole number in a table, unless a column has a bound of its own."""
MOST_DAMAGED = 0.1
"""Share of rows, or one row, whose cell in a column may be unreadable; with more, the file is taken
for one in another form and refused."""
_DELIMITERS = ",;\t|"
_QUOTED = re.compile(r'"[^"]*"')
_DECIMAL = re.compile(r"[-+]?\d*([.,])\d+(?:[eE][-+]?\d+)?", re.ASCII)


def read_text(path: Source) -> str:
    """Return the text of a file in UTF-8, without its byte order mark, uncompressed if gzipped.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        with open_unpacked(Path(path)) as file:
            content = read_whole(file, b"")
        text = content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path}: cannot be read: {reason}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def delimiter_of(header: str) -> str:
    """Return the sign that most often stands between the names of a header."""
    return max(_DELIMITERS, key=_QUOTED.sub("", header).count)


def csv_rows(
    lines: Iterable[str], line: int = 1, delimiter: str = ""
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line each row of a CSV begins on, and its cells.

    Blank lines are left out, and rows of empty cells at the end.

    Args:
        lines: the lines.
        line: number of the first.
        delimiter: the sign between cells; if empty, that of the first line.

    Raises:
        csv.Error: if it is no CSV.
    """
    rest = iter(lines)
    first = next(rest, "")
    reader = csv.reader(chain([first], rest), delimiter=delimiter or delimiter_of(first))
    begins = line
    empty: list[tuple[int, list[str]]] = []
    while True:
        # Cells that hold whole articles are longer than the csv module's default limit, which is
        # global to the process: it is put back as soon as a row is read.
        before = csv.field_size_limit(LONGEST_ROW)
        try:
            cells = next(reader, None)
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if any(cell and not cell.isspace() for cell in cells):
            yield from empty
            empty.clear()
            yield begins, cells
        elif len(cells) > 1:
            empty.append((begins, cells))
        begins = line + reader.line_num


def column_name(cell: str) -> str:
    """Return a column's name without its unit, in lower case: `load` for ` Load [kW]`."""
    return "_".join(cell.partition("[")[0].strip().lower().split())


class Row(NamedTuple):
    """A row of a table.

    Attributes:
        place: file and line, for errors.
        line: line it begins on.
        cells: by column, without blanks around them.
        decimal: the decimal sign of its numbers.
    """

    place: str
    line: int
    cells: Mapping[str, str]
    decimal: str = "."

    def text(self, column: str) -> str:
        """Return the cell under `column` as it is shown; it must not be empty."""
        text = clean_line(self.cells[column])
        if not text:
            raise DataError(f"{self.place}: {column} is empty")
        return text

    def whole(self, column: str, least: int, most: int = MOST_WHOLE) -> int:
        """Return the cell under `column` as a whole number from `least` to `most`."""
        cell = self.cells[column]
        value = whole_number(cell.replace(self.decimal, "."))
        if value is None or value < least:
            raise DataError(f"{self.place}: {column} is {cell!r}, not a whole number >= {least}")
        if value > most:
            raise DataError(f"{self.place}: {column} is {cell[:20]}, more than {most}")
        return value

    def number(self, column: str) -> float:
        """Return the cell under `column` as a finite number."""
        cell = self.cells[column]
        value = read_number(cell.replace(self.decimal, "."))
        if value is None:
            what = repr(cell) if cell else "an empty cell"
            sign = _DECIMAL.fullmatch(cell)
            comma = sign is not None and sign[1] == "," and self.decimal == "."
            hint = " (decimal commas need semicolons between columns)" if comma else ""
            raise DataError(f"{self.place}: {column} is {what}, not a number{hint}")
        return value

    def find_number(self, column: str) -> float:
        """Return the cell under `column` as a number, NaN where it is none."""
        value = read_number(self.cells[column].replace(self.decimal, "."))
        return math.nan if value is None else value

    def positive(self, column: str) -> float:
        """Return the cell under `column` as a finite number above 0."""
        cell = self.cells[column]
        value = read_number(cell.replace(self.decimal, "."))
        if value is None or value <= 0.0:
            raise DataError(f"{self.place}: {column} is {cell!r}, not a number above 0")
        return value


class CsvTable:
    """A CSV file with a header. Cells are text; the methods of `Row` convert them to numbers.

    Columns may be separated by semicolons, as spreadsheets write them where the decimal sign is a
    comma; numbers may then have either sign, but all the same. Gzipped files are read as they are.

    Args:
        path: the file.
        first: name of the first column of a header that other rows may stand above.

    Attributes:
        path: the file.
        header: names of the columns, see `column_name`.
        rows: the rows below it, at least one.
        asked: names of columns that were asked for, there or not.
        notes: which cells hold no number, a sentence for each column that was read.
        dropped: rows left out as they were read: how many, why, and the place.

    Raises:
        DataError: if it cannot be read, names a column twice, has numbers with both decimal signs,
            or a row has more or fewer cells than the header.
    """

    def __init__(self, path: Source, first: str = "") -> None:
        self.path = path
        self.asked: set[str] = set()
        self.notes: list[str] = []
        self.dropped: list[tuple[int, str, str]] = []
        content = read_text(path)
        delimiter = delimiter_of(content.partition("\n")[0])
        try:
            lines = list(csv_rows(io.StringIO(content, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        above = (at for at, (_, cells) in enumerate(lines) if column_name(cells[0]) == first)
        lines = lines[next(above, 0) if first else 0 :]
        if len(lines) < 2:
            raise DataError(f"{path}: a header and at least one row are needed, got {len(lines)}")
        self.header = [column_name(cell) for cell in lines[0][1]]
        twice = repeated(self.header)
        if twice:
            raise DataError(f"{path}, line {lines[0][0]}: the column {twice!r} comes twice")
        self.rows = []
        for line, cells in lines[1:]:
            place = f"{path}, line {line}"
            if len(cells) != len(self.header):
                raise DataError(
                    f"{place}: {len(cells)} cells under {len(self.header)} columns"
                    + " (separate columns by semicolons if numbers have decimal commas)"
                    * (len(cells) > len(self.header) and delimiter == ",")
                )
            # Of unnamed columns, the first.
            named = reversed([*zip(self.header, map(str.strip, cells), strict=True)])
            self.rows.append(Row(place, line, dict(named)))
        if delimiter != ",":
            decimal = self._decimal_sign()
            self.rows = [row._replace(decimal=decimal) for row in self.rows]

    def _decimal_sign(self) -> str:
        """Return the one decimal sign of all columns of numbers.

        Raises:
            DataError: if they have both.
        """
        seen: dict[str, str] = {}
        for name in self.header:
            if read_number(self.rows[0].cells[name].replace(",", ".")) is None:
                continue
            for row in self.rows:
                sign = _DECIMAL.fullmatch(row.cells[name])
                if sign:
                    seen.setdefault(sign[1], f"{row.place}: {name} is {row.cells[name]!r}")
        if len(seen) > 1:
            places = " and ".join(seen.values())
            raise DataError(f"{places}: one decimal sign is needed, and thousands are not grouped")
        return next(iter(seen), ".")

    def has(self, *names: str) -> str | None:
        """Return the first of `names` that is a column."""
        self.asked.update(names)
        return next((name for name in names if name in self.header), None)

    def require(self, *names: str) -> str:
        """Return the first of `names` that is a column.

        Raises:
            DataError: if none is.
        """
        name = self.has(*names)
        if name is None:
            raise DataError(
                f"{self.path}, line 1: the column {names[0]!r} is missing, got {self.header}"
            )
        return name

    def readings(self, *names: str) -> list[float]:
        """Return the first column named one of `names` as numbers, NaN where a cell has none.

        Raises:
            DataError: if there is no such column, or too many of its cells are unreadable.
        """
        found = self._read(Row.number, self.require(*names))
        return [math.nan if value is None else value for value in found]

    def readable(self, read: Callable[[Row, str], T], *names: str) -> list[T]:
        """Return what `read` finds in the first column named one of `names`, row by row.

        Rows without a cell that it can read are left out of the table.

        Raises:
            DataError: if there is no such column, too many of its cells are unreadable, or no row
                is left.
        """
        name = self.require(*names)
        found = list(zip(self.rows, self._read(read, name), strict=True))
        lost = [row for row, value in found if value is None]
        self.dropped += [(1, f"{name} is {row.cells[name]!r}", row.place) for row in lost]
        self.rows = [row for row, value in found if value is not None]
        if not self.rows:
            raise DataError(f"{self.path}: no row with a readable {name} is left")
        return [value for _, value in found if value is not None]

    def _read(self, read: Callable[[Row, str], T], name: str) -> list[T | None]:
        """Return what `read` finds in a column, `None` where it is missing or unreadable."""
        found: list[T | None] = []
        errors = []
        for row in self.rows:
            try:
                found.append(None if is_missing(row.cells[name]) else read(row, name))
            except DataError as error:
                found.append(None)
                errors.append(error)
        if len(errors) > max(1, MOST_DAMAGED * len(found)):
            share = (
                f"{len(errors)} of {len(found)} rows are unreadable, more than {MOST_DAMAGED:.0%}"
            )
            raise DataError(f"{errors[0]}; {share}") from errors[0]
        words = [r for r, v in zip(self.rows, found, strict=True) if v is None and r.cells[name]]
        if words:
            first = f"the first is {words[0].cells[name]!r} in line {words[0].line}"
            self.notes.append(f"{len(words)} cells of {name} hold nothing that is read, {first}")
        return found

    def name_unused(self) -> str:
        """Name the columns that nobody asked for; see `name_unknown`."""
        return name_unknown(self.header, self.asked)

    def texts(self, *names: str) -> list[str]:
        """Return the first column named one of `names`."""
        name = self.require(*names)
        return [row.cells[name] for row in self.rows]

    def numbers(self, *names: str) -> list[float]:
        """Return the first column named one of `names`, as finite numbers."""
        name = self.require(*names)
        return [row.number(name) for row in self.rows]
