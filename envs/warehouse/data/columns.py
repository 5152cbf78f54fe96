"""Columns of the files: their names, which kind of file has them, and rows under them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.numbers import read_identifier
from tokengym.envs.intake.tables import CsvTable, Row, Source, column_name, delimiter_of, read_text
from tokengym.envs.intake.text import clean_line

SLOTS = ("sku", "aisle", "row", "qty")
ORDERS = ("order_id", "release_min", "due_min", "sku", "qty", "value")
DEMAND = ("period", "sku", "qty")
KINDS: Mapping[str, Sequence[str]] = MappingProxyType(
    {"slots": SLOTS, "orders": ORDERS, "demand": DEMAND}
)
"""The columns of each kind of file; a file with those of several is the first of them."""

NAMES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "sku": ("sku", "article", "item", "product"),
        "qty": ("qty", "quantity", "units"),
        "order_id": ("order_id", "order"),
        "release_min": ("release_min", "release"),
        "due_min": ("due_min", "due"),
        "period": ("period", "week", "date", "day", "month"),
    }
)
"""Other names of a column, the usual one first."""


_KEYS = frozenset({"sku", "order_id", "period"})
_SHOWN = 3
"""Refusals that an error or a warning quotes."""


class Refusal(NamedTuple):
    """Rows that a reader left out of a file.

    Attributes:
        rows: how many rows.
        reason: why, with file and line.
    """

    rows: int
    reason: str


def quote_refusals(refused: Sequence[Refusal]) -> str:
    """Write the first reasons, and how many others there are."""
    others = len(refused) - _SHOWN
    reasons = "; ".join(refusal.reason for refusal in refused[:_SHOWN])
    return f"{reasons}; and {others} others" if others > 0 else reasons


def kind_of(path: Source) -> str:
    """Return the kind of a file by its first line; empty if it is of no known kind."""
    first = next(iter(read_text(path).strip().splitlines()), "")
    columns = set(map(column_name, first.split(delimiter_of(first))))
    for kind, needed in KINDS.items():
        if not _missing(columns, needed):
            return kind
    return "layout" if first and not set(first.lower()) - set("xg. ") else ""


def describe(path: Source) -> str:
    """Return what a file of no known kind lacks: the columns of the kind it is nearest to."""
    first = next(iter(read_text(path).strip().splitlines()), "")
    columns = [column_name(cell) for cell in first.split(delimiter_of(first))]
    if all(len(_missing(columns, needed)) == len(needed) for needed in KINDS.values()):
        return (
            f"{path}, line 1: a file of data is a CSV of slots, orders or demand, or a map of a "
            f"floor; got {first[:60]!r}"
        )
    kind = max(KINDS, key=lambda name: -len(_missing(columns, KINDS[name])))
    lacking = [" or ".join(NAMES.get(name, (name,))) for name in _missing(columns, KINDS[kind])]
    return (
        f"{path}, line 1: a file of {kind} has the columns {','.join(KINDS[kind])}; "
        f"missing: {', '.join(lacking)}; got {columns}"
    )


class Rows(NamedTuple):
    """The rows of a file.

    Attributes:
        rows: the rows, their cells under the usual names of the columns, identifiers as shown.
        notes: what was understood of the file, a sentence each.
        dropped: rows left out: how many, why, and the place.
    """

    rows: Sequence[Row]
    notes: tuple[str, ...]
    dropped: Sequence[tuple[int, str, str]]


def rows_of(path: Source, columns: Sequence[str], numbers: Sequence[str] = ()) -> Rows:
    """Read the rows of a CSV file.

    Args:
        path: the file.
        columns: names of the columns.
        numbers: those that must hold a number; rows that have none are left out.

    Raises:
        DataError: if the file cannot be read, its header lacks a column, or too many rows lack a
            number.
    """
    table = CsvTable(path)
    if _missing(table.header, columns):
        raise DataError(describe(path))
    found = {column: table.require(*NAMES.get(column, (column,))) for column in columns}
    for column in numbers:
        table.readable(Row.number, found[column])
    rows = []
    for row in table.rows:
        cells = {column: row.cells[name] for column, name in found.items()}
        cells |= {name: read_identifier(clean_line(cells[name])) for name in _KEYS & cells.keys()}
        rows.append(row._replace(cells=cells))
    unused = table.name_unused()
    note = f"{Path(path).name}: columns that are not used: {unused}"
    return Rows(rows, (note,) if unused else (), table.dropped)


def _missing(header: Sequence[str] | set[str], needed: Sequence[str]) -> list[str]:
    return [name for name in needed if not set(NAMES.get(name, (name,))) & set(header)]
