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
from tokengym.envs.warehouse.games.picking.orders import needs
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
    for item, asked in zip(shop.items, _units_by_day(shop, None), strict=True):
        due = [0, *item.due, *[0] * len(shop.books)]
        supply = item.stock
        for day, demand in enumerate(accumulate(asked)):
            supply += due[day]
            bound -= item.model.holding * max(0, supply - demand)
    return bound


def can_serve(shop: Shop) -> bool:
    """Return whether reorders made in hindsight could serve every unit asked for."""
    asked = _units_by_day(shop, None)
    return all(
        cheapest_lots(item, units) is not None
        for item, units in zip(shop.items, asked, strict=True)
    )


def hindsight_replies(shop: Shop, plans: Sequence[Plan]) -> list[str] | None:
    """Write the replies that ship every day's best plan and reorder for it at the least cost.

    Returns:
        the replies, or `None` if the first stock or the room does not allow it.
    """
    lots = []
    for item, units in zip(shop.items, _units_by_day(shop, plans), strict=True):
        lot = cheapest_lots(item, units)
        if lot is None:
            return None
        lots.append(lot)
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


def _units_by_day(shop: Shop, plans: Sequence[Plan] | None) -> list[list[int]]:
    """Return the units asked for, by item and day; only what `plans` ship if they are given."""
    totals = []
    for day, book in enumerate(shop.books):
        shipped = None if plans is None else {name for leg in plans[day].legs for name in leg.ids}
        wanted = [order for order in book if shipped is None or order.id in shipped]
        totals.append(needs(wanted))
    return [[total.get(slot, 0) for total in totals] for slot in shop.slots]


def cheapest_lots(item: Item, units: Sequence[int]) -> list[int] | None:
    """Return the cheapest reorders by day that serve `units` by day, known in advance.

    Source: Wagner and Whitin, Management Science 5 (1958).

    Returns:
        units to order by day, or `None` if what arrives before the first reorder is too little.
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
        return None
    best: list[tuple[float, int]] = [(0.0, 0)] * (len(units) + 1)
    for first in range(len(units) - 1, -1, -1):
        if not needed[first]:
            best[first] = (best[first + 1][0], first)
            continue
        costs = []
        kept = model.fixed
        for last in range(first, len(units)):
            kept += model.holding * (last - first) * needed[last]
            costs.append((kept + best[last + 1][0], last + 1))
        best[first] = min(costs)
    lots = [0] * len(units)
    day = 0
    while day < len(units):
        end = best[day][1]
        if end > day:
            lots[day - model.lead] = sum(needed[day:end])
        day = max(end, day + 1)
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
    if not can_serve(shop):
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
