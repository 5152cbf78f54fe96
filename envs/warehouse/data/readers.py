"""Reading a user's own layout, orders and sales. Every refusal names file, line and reason.

- A layout: text in the characters of RWARE's layouts (https://github.com/semitable/robotic-warehouse),
  `x` shelf, `g` goal, `.` walkway; blanks are dropped, capitals allowed.
- `slots.csv`: `sku,aisle,row,qty`, one slot an article.
- `orders.csv`: `order_id,release_min,due_min,sku,qty,value`, a row a line; values of lines add up.
- `demand.csv`: `period,sku,qty`, a row for every article and period.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.core.tables import MOST_WHOLE, Row, Source, Table, column_name, read_text
from tokengym.envs.warehouse.data.records import OrderBook, Records, SalesHistory
from tokengym.envs.warehouse.layout import AisleLayout, Cell, Layout, MapLayout
from tokengym.envs.warehouse.orders import Order

SLOTS = ("sku", "aisle", "row", "qty")
ORDERS = ("order_id", "release_min", "due_min", "sku", "qty", "value")
DEMAND = ("period", "sku", "qty")
MOST_UNITS = 10_000
"""Largest demand for an article in a period: its distribution is listed unit by unit."""


class Slot(NamedTuple):
    """The slot of an article.

    Attributes:
        name: the slot, as in `A2-7`.
        units: units there.
    """

    name: str
    units: int


def read(paths: Source | Sequence[Source]) -> Records:
    """Read files of demand, or of slots and orders, told apart by their first lines.

    Args:
        paths: the file of demand; or those of slots and orders, in any order, and a layout if
            there are other than parallel aisles.

    Raises:
        DataError: if the files do not fit together or one of them is refused.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    kinds = {_kind(file): file for file in files}
    if len(kinds) == len(files):
        if set(kinds) == {"demand"}:
            return read_demand(kinds["demand"])
        if {"slots", "orders"} <= set(kinds) <= {"slots", "orders", "layout"}:
            layout = read_layout(kinds["layout"]) if "layout" in kinds else None
            return read_orders(kinds["orders"], kinds["slots"], layout)
    raise DataError(
        "data are a file of demand, or files of slots and of orders with or without a layout; got "
        f"{[f'{file}: {_kind(file)}' for file in files]}"
    )


def read_layout(path: Source) -> MapLayout:
    """Read a map of shelves, goals and walkways.

    Raises:
        DataError: naming file, line and reason.
    """
    lines = [line.replace(" ", "").lower() for line in read_text(path).strip().splitlines()]
    for number, line in enumerate(lines, start=1):
        strange = sorted(set(line) - set("xg."))
        if strange:
            raise DataError(f"{path}, line {number}: {strange} are none of 'x', 'g' and '.'")
        if len(line) != len(lines[0]):
            raise DataError(
                f"{path}, line {number}: {len(line)} cells, the first line has {len(lines[0])}"
            )
    try:
        return MapLayout(tuple(lines))
    except TaskError as error:
        raise DataError(f"{path}, line 1: {error}") from error


def read_slots(path: Source, layout: Layout | None = None) -> tuple[Layout, dict[str, Slot]]:
    """Read where every article lies.

    Args:
        path: a CSV with the columns `sku,aisle,row,qty`.
        layout: the layout; the smallest one of parallel aisles that has all slots if `None`.

    Returns:
        the layout, and slot and units by article.

    Raises:
        DataError: naming file, line and reason.
    """
    cells: dict[str, Cell] = {}
    slots: dict[str, Slot] = {}
    lowest = 1 if layout is None else 0
    known = None if layout is None else set(layout.slots())
    for row in _rows(path, SLOTS):
        sku = row.text("sku")
        cell = Cell(row.whole("aisle", 0), row.whole("row", lowest))
        if sku in slots:
            raise DataError(f"{row.place}: {sku!r} has a slot already; an article lies in one")
        if cell in cells.values():
            raise DataError(f"{row.place}: slot {cell.name} is taken; a slot holds one article")
        if known is not None and cell not in known:
            raise DataError(f"{row.place}: there is no shelf at {cell.name}")
        cells[sku] = cell
        slots[sku] = Slot(cell.name, row.whole("qty", 0))
    if layout is None:
        most = [max(cell.aisle for cell in cells.values()), max(c.row for c in cells.values())]
        try:
            layout = AisleLayout(most[0] + 1, most[1])
        except TaskError as error:
            raise DataError(f"{path}: {error}") from error
    return layout, slots


def read_orders(path: Source, slots_path: Source, layout: Layout | None = None) -> OrderBook:
    """Read orders with where their articles lie.

    Args:
        path: a CSV with the columns `order_id,release_min,due_min,sku,qty,value`.
        slots_path: see `read_slots`.
        layout: see `read_slots`.

    Raises:
        DataError: naming file, line and reason.
    """
    layout, slots = read_slots(slots_path, layout)
    rows: dict[str, list[Row]] = {}
    for row in _rows(path, ORDERS):
        rows.setdefault(row.text("order_id"), []).append(row)
    orders = sorted(
        ((_order(number, lines, slots), lines[0].line) for number, lines in rows.items()),
        key=lambda entry: (entry[0].release, entry[1]),
    )
    stock = {slot.name: slot.units for slot in slots.values()}
    book, lines = zip(*orders, strict=True)
    return OrderBook(str(path), layout, stock, book, lines)


def _order(order_id: str, rows: Sequence[Row], slots: Mapping[str, Slot]) -> Order:
    """Put the lines of one order together."""
    release, due = rows[0].whole("release_min", 0), rows[0].whole("due_min", 0)
    if due < release:
        raise DataError(f"{rows[0].place}: due at {due}, before its release at {release}")
    units: dict[str, int] = {}
    for row in rows:
        if (row.whole("release_min", 0), row.whole("due_min", 0)) != (release, due):
            raise DataError(f"{row.place}: the times of order {order_id!r} differ from its first")
        slot = slots.get(row.text("sku"))
        if slot is None:
            raise DataError(f"{row.place}: {row.text('sku')!r} has no slot")
        if slot.name in units:
            raise DataError(f"{row.place}: order {order_id!r} asks for {row.text('sku')!r} twice")
        units[slot.name] = row.whole("qty", 1)
    value = sum(row.positive("value") for row in rows)
    if value > MOST_WHOLE:
        raise DataError(f"{rows[0].place}: order {order_id!r} is worth more than {MOST_WHOLE}")
    return Order(order_id, value, due, release, tuple(units.items()), sum(units.values()))


def read_demand(path: Source) -> SalesHistory:
    """Read units asked for by period and article.

    Args:
        path: a CSV with the columns `period,sku,qty`; periods are whole numbers without a gap, and
            each has a row for every article.

    Raises:
        DataError: naming file, line and reason.
    """
    asked: dict[str, dict[int, int]] = {}
    for row in _rows(path, DEMAND):
        periods = asked.setdefault(row.text("sku"), {})
        period = row.whole("period", 0)
        if period in periods:
            raise DataError(f"{row.place}: period {period} of {row.text('sku')!r} comes twice")
        periods[period] = row.whole("qty", 0, MOST_UNITS)
    first = min(min(periods) for periods in asked.values())
    last = max(max(periods) for periods in asked.values())
    for sku, periods in asked.items():
        for period in range(first, last + 1):
            if period not in periods:
                raise DataError(f"{path}: a gap: {sku!r} has no row for period {period}")
    by_period = {
        sku: tuple(periods[period] for period in range(first, last + 1))
        for sku, periods in asked.items()
    }
    return SalesHistory(str(path), by_period)


def _kind(path: Source) -> str:
    """Return the kind of a file by its first line."""
    first = next(iter(read_text(path).strip().splitlines()), "")
    columns = set(map(column_name, first.split(",")))
    for kind, needed in (("slots", SLOTS), ("orders", ORDERS), ("demand", DEMAND)):
        if columns >= set(needed):
            return kind
    return "layout" if first and not set(first.lower()) - set("xg. ") else "unknown"


def _rows(path: Source, columns: Sequence[str]) -> list[Row]:
    """Read the rows of a CSV file under a header that has `columns`."""
    table = Table(path)
    for column in columns:
        table.require(column)
    return table.rows
