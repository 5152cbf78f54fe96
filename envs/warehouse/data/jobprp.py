"""Reading instances of joint order batching and picker routing: a layout and its orders.

The numeric files of https://github.com/lorencifelipe/JOBPRP, made from the instances of Henn and
Wäscher, European Journal of Operational Research 222 (2012):

- layout, a number a line: aisles, locations on a side of an aisle, three lengths, the distance of
  the depot, articles a trip carries, orders;
- orders: `<order> <articles>`, then a line `<article> <side> <location>` each; two sides an aisle.
"""

from tokengym.envs.core.errors import DataError, TaskError
from tokengym.envs.core.tables import Source, read_text
from tokengym.envs.warehouse.data.columns import Refusal
from tokengym.envs.warehouse.data.records import OrderBook, refuse_all
from tokengym.envs.warehouse.layout import AisleLayout, Cell, walks
from tokengym.envs.warehouse.orders import Order
from tokengym.envs.warehouse.routing import s_shape

_SIDES = 2
_HASTE = 0.6
"""Releases and due dates, as a share of the times of trips of one order each."""


def read_jobprp(layout_path: Source, orders_path: Source) -> OrderBook:
    """Read an instance as orders to pick.

    Rows are one step, aisles two, as in all layouts of aisles; both sides of a row are one slot; an
    article is a unit, worth 1. The files have no times: if every order went alone, in the order of
    the file, in S-shape, an order would leave and be back at times of which .6 are its release and
    its due date.

    Raises:
        DataError: naming file, line and reason: if a file has another form, or no order is left.
    """
    numbers = read_text(layout_path).split()
    try:
        aisles, rows = int(numbers[0]), int(numbers[1])
        layout = AisleLayout(aisles, rows)
    except (IndexError, ValueError, TaskError) as error:
        raise DataError(
            f"{layout_path}: no aisles and locations in lines 1 and 2: {error}"
        ) from None
    steps = walks(layout)
    orders, lines, refused, time = [], [], [], 0
    for line, name, articles in _articles(orders_path):
        units: dict[str, int] = {}
        off = ""
        for place, side, location in articles:
            slot = Cell(side // _SIDES, location + 1).name
            if slot not in steps.number:
                off = f"{orders_path}, line {place}: there is no location {side} {location}"
            units[slot] = units.get(slot, 0) + 1
        if off:
            refused.append(Refusal(1 + len(articles), off))
            continue
        release, here = round(_HASTE * time), 0
        for slot in s_shape(list(units)):
            time += steps.steps[here][steps.number[slot]]
            here = steps.number[slot]
        time += steps.steps[here][0] + len(articles)
        due = round(_HASTE * time)
        orders.append(
            Order(name, float(len(articles)), due, release, tuple(units.items()), len(articles))
        )
        lines.append(line)
    if not orders:
        raise DataError(refuse_all(orders_path, "order", refused))
    return OrderBook(str(orders_path), layout, {}, tuple(orders), tuple(lines), tuple(refused))


def _articles(path: Source) -> list[tuple[int, str, list[tuple[int, int, int]]]]:
    """Return each order's line, name, and the line, side and location of its articles."""
    found: list[tuple[int, str, list[tuple[int, int, int]]]] = []
    left = 0
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        cells = text.split()
        if not cells:
            continue
        wanted = 3 if left else 2
        if len(cells) != wanted or not all(cell.isascii() and cell.isdigit() for cell in cells):
            form = "<article> <side> <location>" if left else "<order> <articles>"
            raise DataError(f"{path}, line {line}: {form} is expected, got {text.strip()!r}")
        if left:
            found[-1][2].append((line, int(cells[1]), int(cells[2])))
            left -= 1
        elif int(cells[1]):  # an order of no articles ends the file
            found.append((line, cells[0], []))
            left = int(cells[1])
    if left:
        raise DataError(f"{path}: the last order lacks {left} articles")
    return found
