"""Instances of order batching as orders on a floor of aisles, whatever file they come from."""

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.tables import Source
from tokengym.envs.warehouse.data.columns import Refusal
from tokengym.envs.warehouse.data.records import OrderBook, refuse_all
from tokengym.envs.warehouse.games.picking.orders import Order
from tokengym.envs.warehouse.games.picking.routing import s_shape
from tokengym.envs.warehouse.layout import AisleLayout, Cell, walks

HASTE = 0.6
"""Time of the last due date, as a share of the time of trips of one order each."""


class Article(NamedTuple):
    """A line of an order.

    Attributes:
        place: where the file has it, for refusals.
        aisle: the aisle, from 0; both of its sides are one.
        location: the location in the aisle, from 0 at the front.
        units: units asked for, at least 1.
    """

    place: str
    aisle: int
    location: int
    units: int = 1


class Listed(NamedTuple):
    """An order of an instance.

    Attributes:
        line: line of the file it begins on, or its number where there are no lines.
        name: its name.
        articles: what it asks for.
        arrival: when it becomes known, in the file's units.
        due: when it should be back, in the file's units; 0 if the file does not say.
    """

    line: int
    name: str
    articles: Sequence[Article]
    arrival: float = 0.0
    due: float = 0.0


def order_book(path: Source, layout: AisleLayout, listed: Sequence[Listed]) -> OrderBook:
    """Return the orders on the floor; an order is worth its number of units.

    If every order went alone, in the order of the file, in S-shape, the last would be back at a
    time of which `HASTE` is the last due date. The others, and arrivals, keep their ratios to it.
    Where the file has no due dates, an order is due at `HASTE` of the time it would be back. Where
    all arrive at once, an order is released at `HASTE` of the time it would leave, in the order of
    due dates, or earlier if it could not be back when due.

    Args:
        path: the file of the orders, for refusals.
        layout: the floor.
        listed: the orders in the order of the file.

    Raises:
        DataError: if no order is left.
    """
    found, refused = _on_the_floor(path, layout, listed)
    if not found:
        raise DataError(refuse_all(path, "order", refused))
    last = max(one.due for one, _ in found)
    found.sort(key=lambda pair: pair[0].due)
    walked = [_steps(layout, units) for _, units in found]
    backs = [HASTE * time for time in itertools.accumulate(walked)]
    dues, releases = backs, [0.0, *backs[:-1]]
    if last > 0.0:
        scale, first = backs[-1] / last, min(one.arrival for one, _ in found)
        dues = [scale * one.due for one, _ in found]
        arrivals = [scale * (one.arrival - first) for one, _ in found]
        latest = [max(0.0, due - time) for due, time in zip(dues, walked, strict=True)]
        at_once = max(arrivals) < 1.0
        releases = list(map(min, releases, latest)) if at_once else arrivals
    orders = []
    for (one, units), release, due in zip(found, releases, dues, strict=True):
        count = sum(units.values())
        lines = tuple(units.items())
        order = Order(one.name, float(count), round(due), round(release), lines, count)
        orders.append((order, one.line))
    orders.sort(key=lambda pair: pair[0].release)
    return OrderBook(
        str(path),
        layout,
        {},
        tuple(order for order, _ in orders),
        tuple(line for _, line in orders),
        tuple(refused),
    )


def _on_the_floor(
    path: Source, layout: AisleLayout, listed: Sequence[Listed]
) -> tuple[list[tuple[Listed, Mapping[str, int]]], list[Refusal]]:
    """Return the orders with their units by slot, and what is left out."""
    places = walks(layout).number
    found: list[tuple[Listed, Mapping[str, int]]] = []
    refused: list[Refusal] = []
    for order in listed:
        units: dict[str, int] = {}
        off = ""
        for article in order.articles:
            slot = Cell(article.aisle, article.location + 1).name
            if slot not in places:
                off = (
                    f"{path}, {article.place}: aisle {article.aisle}, location "
                    f"{article.location} is off the floor of {layout.aisles} aisles with "
                    f"{layout.rows} locations, both counted from 0"
                )
            units[slot] = units.get(slot, 0) + article.units
        if off or not units:
            reason = off or f"{path}: order {order.name} asks for nothing"
            refused.append(Refusal(1 + len(order.articles), reason))
        else:
            found.append((order, units))
    return found, refused


def _steps(layout: AisleLayout, units: Mapping[str, int]) -> int:
    """Return the time of a trip of one order, in steps: the S-shape walk, and one per unit."""
    floor, here, steps = walks(layout), 0, sum(units.values())
    for slot in s_shape(list(units)):
        steps += floor.steps[here][floor.number[slot]]
        here = floor.number[slot]
    return steps + floor.steps[here][0]
