"""Reading orders and where articles are: a map of the floor, one slot an article.

A row that cannot be used refuses its order; the other orders are used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.intake.tables import MOST_WHOLE, Row, Source, read_text
from tokengym.envs.warehouse.data.columns import ORDERS, SLOTS, Refusal, rows_of
from tokengym.envs.warehouse.data.records import OrderBook, refuse_all
from tokengym.envs.warehouse.data.times import Moment, moment_of
from tokengym.envs.warehouse.games.picking.orders import Order
from tokengym.envs.warehouse.layout import AisleLayout, Cell, Layout, MapLayout

_DAY_MINUTES = 24 * 60


class Slot(NamedTuple):
    """The slot of an article.

    Attributes:
        name: the slot, as in `A2-7`.
        units: units there.
    """

    name: str
    units: int


class Shelves(NamedTuple):
    """Where articles are.

    Attributes:
        layout: slots and walkways.
        slots: slot and units by article.
        refused: rows with a cell that is no number.
        notes: what was understood of the file, a sentence each.
    """

    layout: Layout
    slots: Mapping[str, Slot]
    refused: tuple[Refusal, ...]
    notes: tuple[str, ...]


def read_layout(path: Source) -> MapLayout:
    """Read a map of shelves, goals and walkways.

    Raises:
        DataError: naming file, line and reason.
    """
    lines = [line.replace(" ", "").lower() for line in read_text(path).strip().splitlines()]
    try:
        return MapLayout(tuple(lines))
    except TaskError as error:
        raise DataError(f"{path}, {error}") from error


def read_slots(path: Source, layout: Layout | None = None) -> Shelves:
    """Read the slot of every article.

    Args:
        path: a CSV with the columns `sku,aisle,row,qty`.
        layout: the layout; the smallest one of parallel aisles that has all slots if `None`.

    Raises:
        DataError: naming file, line and reason.
    """
    cells: dict[str, Cell] = {}
    slots: dict[str, Slot] = {}
    lowest = 1 if layout is None else 0
    known = None if layout is None else set(layout.slots())
    read = rows_of(path, SLOTS, SLOTS[1:])
    for row in read.rows:
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
    refused = tuple(Refusal(rows, f"{place}: {why}") for rows, why, place in read.dropped)
    return Shelves(layout, slots, refused, read.notes)


def read_orders(path: Source, slots_path: Source, layout: Layout | None = None) -> OrderBook:
    """Read orders with the slots of their articles.

    Args:
        path: a CSV with the columns `order_id,release_min,due_min,sku,qty,value`; times are whole
            minutes or timestamps.
        slots_path: see `read_slots`.
        layout: see `read_slots`.

    Raises:
        DataError: naming file, line and reason: if the file is no such CSV, or no order is left.
    """
    layout, slots, unplaced, notes = read_slots(slots_path, layout)
    read = rows_of(path, ORDERS)
    by_order: dict[str, list[Row]] = {}
    for row in read.rows:
        by_order.setdefault(row.cells["order_id"], []).append(row)
    kind: str | None = None
    orders = []
    refused = []
    for order_id, rows in by_order.items():
        try:
            rows[0].text("order_id")
            kind = kind or _time(rows[0], "release_min", None).kind
            orders.append(_order(order_id, rows, slots, kind))
        except DataError as error:
            refused.append(Refusal(len(rows), str(error)))
    if not orders:
        raise DataError(refuse_all(path, "order", refused))
    if kind != "number":
        start = min(order.release for order in orders) // _DAY_MINUTES * _DAY_MINUTES
        orders = [
            replace(order, release=order.release - start, due=order.due - start) for order in orders
        ]
    orders.sort(key=lambda order: order.release)
    stock = {slot.name: slot.units for slot in sorted(slots.values())}
    return OrderBook(
        str(path),
        layout,
        stock,
        tuple(orders),
        refused=(*unplaced, *refused),
        read=len(read.rows),
        notes=(*notes, *read.notes),
    )


def _time(row: Row, column: str, kind: str | None) -> Moment:
    moment = moment_of(row, column, kind)
    if moment.kind not in ("number", "time", "zoned"):
        raise DataError(f"{row.place}: {column} is {row.cells[column]!r}, not a time of day")
    return moment


def _order(order_id: str, rows: Sequence[Row], slots: Mapping[str, Slot], kind: str) -> Order:
    """Put the lines of one order together."""
    columns = ("release_min", "due_min")
    release, due = times = [_time(rows[0], column, kind).at for column in columns]
    if due < release:
        cells = [rows[0].cells[column] for column in columns]
        raise DataError(f"{rows[0].place}: due at {cells[1]}, before its release at {cells[0]}")
    units: dict[str, int] = {}
    for row in rows:
        if [_time(row, column, kind).at for column in columns] != times:
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
