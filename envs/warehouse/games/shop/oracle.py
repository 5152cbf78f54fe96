"""An upper bound for a shop, and a plan made in hindsight that comes close to it.

The bound. Whatever is done on a day, its orders cannot earn more than the best plan with every slot
full, lost sales charged (`best_plan` proves that day by day). Whatever is reordered, what is left
of an item in the evening is at least its first stock and deliveries less all demand so far, and it
is charged for holding. Reorders cost nothing or more. So no policy, not even one that knows every
order in advance, does better than the sum of the days' best plans less those holding costs.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.picking.heuristics import follow, singles
from tokengym.envs.warehouse.games.picking.oracle import Plan, best_plan, commands
from tokengym.envs.warehouse.games.picking.orders import Order, needs
from tokengym.envs.warehouse.games.shop.generator import draw_books
from tokengym.envs.warehouse.games.shop.rules import Days, Shop, read_shop
from tokengym.envs.warehouse.games.stock.heuristics import lean_base_stock, order_up_to
from tokengym.envs.warehouse.games.stock.rules import Item
from tokengym.envs.warehouse.grammar import Done, write_pick, write_reorder


def daily_plans(shop: Shop) -> list[Plan]:
    """Return the best plan of every day with every slot full."""
    return [
        best_plan(shop.site, book, penalties=[shop.penalty(order) for order in book])
        for book in shop.books
    ]


def upper_bound(shop: Shop, plans: Sequence[Plan]) -> float:
    """Return a value that no policy exceeds; the module docstring has the proof.

    Args:
        shop: the shop.
        plans: `daily_plans(shop)`.
    """
    bound = math.fsum(plan.value for plan in plans)
    for item, asked in zip(shop.items, _units_by_day(shop, shop.books), strict=True):
        due = [0, *item.due, *[0] * len(shop.books)]
        supply = item.stock
        for day, demand in enumerate(accumulate(asked)):
            supply += due[day]
            bound -= item.model.holding * max(0, supply - demand)
    return bound


def hindsight_replies(shop: Shop, plans: Sequence[Plan]) -> list[str] | None:
    """Write the replies that ship every day's best plan and reorder for it at the least cost.

    Returns:
        the replies, or `None` if the first stock or the room does not allow it.
    """
    shipped = [
        [order for order in book if any(order.id in leg.ids for leg in plan.legs)]
        for book, plan in zip(shop.books, plans, strict=True)
    ]
    lots = list(map(cheapest_lots, shop.items, _units_by_day(shop, shipped)))
    if not all(lots):
        return None
    days = Days(shop)
    written = []
    for day, plan in enumerate(plans):
        placed = [lot[day] for lot in lots]
        if any(n > inventory.room for n, inventory in zip(placed, days.inventories, strict=True)):
            return None
        names = [item.sku for item in shop.items]
        written.append(write_reorder(list(zip(names, placed, strict=True))))
        days.open(placed)
        for leg in plan.legs:
            if isinstance(days.picking.trip(leg.ids, leg.stops), str):
                raise TaskError(f"day {day + 1} cannot be played as planned: {leg}")
        written += map(write_pick, commands(plan.legs, [0] * shop.site.pickers))
        if days.picking.can_ship():
            written.append(write_pick(Done()))
        days.close()
    return written


def reference_value(shop: Shop) -> float:
    """Return the objective of the reference: lean reorders, orders one at a time as they came."""
    days = Days(shop)
    while not days.over:
        days.open(
            [order_up_to(lean_base_stock, inventory, days.day) for inventory in days.inventories]
        )
        follow(singles, days.picking)
        days.close()
    return days.objective


def _units_by_day(shop: Shop, books: Sequence[Sequence[Order]]) -> list[list[int]]:
    """Return the units that the orders of every day ask for, by item and day."""
    totals = [needs(book) for book in books]
    return [[total.get(slot, 0) for total in totals] for slot in shop.slots]


def cheapest_lots(item: Item, units: Sequence[int]) -> list[int]:
    """Return the cheapest reorders by day that serve `units` by day, known in advance.

    Source: Wagner and Whitin, Management Science 5 (1958).

    Returns:
        units to order by day; nothing if what arrives before the first reorder is too little.
    """
    model = item.model
    needed = list(units)
    have = item.stock
    for day in range(len(units)):
        have += item.due[day - 1] if 0 < day <= len(item.due) else 0
        served = min(have, needed[day])
        needed[day] -= served
        have -= served
    if any(needed[: model.lead]):
        return []
    best: list[tuple[float, int]] = [(0.0, 0)] * (len(units) + 1)
    for first in reversed(range(len(units))):
        kept = model.fixed if needed[first] else 0.0
        costs = []
        for end in range(first + 1, len(units) + 1):
            kept += model.holding * (end - 1 - first) * needed[end - 1]
            costs.append((kept + best[end][0], end))
        best[first] = min(costs) if needed[first] else costs[0]
    lots = [0] * len(units)
    day = 0
    while day < len(units):
        end = best[day][1]
        if needed[day]:
            lots[day - model.lead] = sum(needed[day:end])
        day = end
    return lots


def solve(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> dict[str, Any] | None:
    """Return the bound, the reference and a plan made in hindsight.

    Args:
        instance: the shop.
        rng: randomness of the orders.
        outcomes: the orders by day; `None` to draw them.

    Returns:
        the answer of a Task; `None` if no plan serves all orders.
    """
    books = draw_books(instance, rng) if outcomes is None else outcomes
    shop = read_shop(instance, books)
    if not all(map(cheapest_lots, shop.items, _units_by_day(shop, shop.books))):
        return None
    plans = daily_plans(shop)
    plan = hindsight_replies(shop, plans)
    if plan is None:
        return None
    return {
        "books": [[dict(order) for order in book] for book in books],
        "optimum": upper_bound(shop, plans),
        "reference": reference_value(shop),
        "plan": plan,
    }
