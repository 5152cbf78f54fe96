"""Reading where articles are: a map of the floor, and one slot per article."""

from typing import NamedTuple

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.core.tables import Source, read_text
from tokengym.envs.warehouse.data.columns import SLOTS, rows_of
from tokengym.envs.warehouse.layout import AisleLayout, Cell, Layout, MapLayout


class Slot(NamedTuple):
    """The slot of an article.

    Attributes:
        name: the slot, as in `A2-7`.
        units: units there.
    """

    name: str
    units: int


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
    """Read the slot of every article.

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
    for row in rows_of(path, SLOTS):
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
