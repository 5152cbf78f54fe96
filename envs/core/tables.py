"""Reading a user's text files and CSV tables. Every error names file, line and reason."""

import csv
import io
import math
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.files import open_unpacked, read_whole

Source = str | Path
"""The path of a file."""


MOST_WHOLE = 1_000_000
"""Largest whole number in a table, unless a column has a bound of its own."""
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def read_text(path: Source, *, damaged: str = "strict") -> str:
    """Return the text of a file in UTF-8, without its byte order mark, uncompressed if gzipped.

    Args:
        path: the file.
        damaged: what becomes of bytes that are no text, as `bytes.decode` has it.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        with open_unpacked(Path(path)) as file:
            content = read_whole(file, b"")
        text = content.decode("utf-8-sig", errors=damaged)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def csv_rows(content: str, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """Yield the line each row of a CSV begins on, from 1, and its cells; blank lines are left out.

    Raises:
        csv.Error: if it is no CSV.
    """
    # Cells that hold whole articles are longer than the csv module's default limit, which is
    # global to the process: it is put back as soon as the rows are read.
    before = csv.field_size_limit(sys.maxsize)
    try:
        reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter)
        rows = []
        line = 1
        for cells in reader:
            rows.append((line, cells))
            line = reader.line_num + 1
    finally:
        csv.field_size_limit(before)
    return ((line, cells) for line, cells in rows if cells)


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
        """Return the cell under `column`, which must not be empty."""
        if not self.cells[column]:
            raise DataError(f"{self.place}: {column} is empty")
        return self.cells[column]

    def whole(self, column: str, least: int, most: int = MOST_WHOLE) -> int:
        """Return the cell under `column` as a whole number from `least` to `most`."""
        cell = self.cells[column]
        try:
            value = int(cell)
        except ValueError:
            value = least - 1
        if value < least:
            raise DataError(f"{self.place}: {column} is {cell!r}, not a whole number >= {least}")
        if value > most:
            raise DataError(f"{self.place}: {column} is {cell[:20]}, more than {most}")
        return value

    def number(self, column: str) -> float:
        """Return the cell under `column` as a finite number."""
        cell = self.cells[column]
        value = self._finite(cell)
        if value is None:
            what = repr(cell) if cell else "an empty cell"
            comma = _DECIMAL_COMMA.fullmatch(cell) and self.decimal == "."
            hint = " (decimal commas need semicolons between columns)" if comma else ""
            raise DataError(f"{self.place}: {column} is {what}, not a number{hint}")
        return value

    def positive(self, column: str) -> float:
        """Return the cell under `column` as a finite number above 0."""
        value = self._finite(self.cells[column])
        if value is None or value <= 0.0:
            cell = self.cells[column]
            raise DataError(f"{self.place}: {column} is {cell!r}, not a number above 0")
        return value

    def _finite(self, cell: str) -> float | None:
        try:
            value = float(cell.replace(self.decimal, "."))
        except ValueError:
            return None
        return value if math.isfinite(value) else None


class CsvTable:
    """A CSV file with a header. Cells are text; the methods of `Row` convert them to numbers.

    Columns may be separated by semicolons, as spreadsheets write them where the decimal sign is a
    comma; numbers may then have either sign. Gzipped files are read as they are.

    Args:
        path: the file.

    Attributes:
        path: the file.
        header: names of the columns, see `column_name`.
        rows: the rows below it, at least one.

    Raises:
        DataError: if it cannot be read, or a row has more or fewer cells than the header.
    """

    def __init__(self, path: Source) -> None:
        self.path = path
        try:
            content = read_text(path)
            head = content.partition("\n")[0]
            semicolons = head.count(";") > head.count(",")
            lines = list(csv_rows(content, ";" if semicolons else ","))
        except csv.Error as error:
            raise DataError(f"{path}: cannot be read: {error}") from error
        if len(lines) < 2:
            raise DataError(f"{path}: a header and at least one row are needed, got {len(lines)}")
        self.header = [column_name(cell) for cell in lines[0][1]]
        self.rows = []
        for line, cells in lines[1:]:
            place = f"{path}, line {line}"
            if len(cells) != len(self.header):
                raise DataError(
                    f"{place}: {len(cells)} cells under {len(self.header)} columns"
                    + " (separate columns by semicolons if numbers have decimal commas)"
                    * (len(cells) > len(self.header) and not semicolons)
                )
            # Of columns with one name, the first.
            named = reversed([*zip(self.header, map(str.strip, cells), strict=True)])
            self.rows.append(Row(place, line, dict(named), "," if semicolons else "."))

    def has(self, *names: str) -> str | None:
        """Return the first of `names` that is a column."""
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

    def texts(self, *names: str) -> list[str]:
        """Return the first column named one of `names`."""
        name = self.require(*names)
        return [row.cells[name] for row in self.rows]

    def numbers(self, *names: str) -> list[float]:
        """Return the first column named one of `names`, as finite numbers."""
        name = self.require(*names)
        return [row.number(name) for row in self.rows]
