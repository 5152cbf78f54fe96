"""Drawing instances: a shift, items to keep in stock, or a shop; and their random outcomes."""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from tokengym.envs.warehouse.inventory import read_items
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.lease_demand import draw_lease
from tokengym.envs.warehouse.levels import (
    FullLevel,
    LeaseLevel,
    Level,
    PickLevel,
    StockLevel,
    SupplyLevel,
)
from tokengym.envs.warehouse.orders import Site
from tokengym.envs.warehouse.supply_demand import HISTORY, draw_pattern, draw_units

_VALUES = (4, 12)
_LARGER_LINE = 0.35
"""Share of lines above one unit."""
_USUAL_DEMAND = (1.0, 4.0)
_PACES = (0.2, 1.0, 2.0)
"""Demand of a day as a multiple of the usual one: a quiet day, a usual one, a busy one."""
_LOST_TO_HOLDING = (0.5, 40.0)
"""Range of the cost of a unit lost, as a multiple of that of a unit left; drawn log-uniformly."""
_MOST_LEFTOVER = 10
_SECOND_LINE = 0.5
"""Share of orders of `full` with two lines."""


def draw(rng: np.random.Generator, level: Level) -> dict[str, Any]:
    """Draw an instance of a level."""
    if isinstance(level, PickLevel):
        return _draw_pick(rng, level)
    if isinstance(level, SupplyLevel):
        return _draw_supply(rng, level)
    if isinstance(level, LeaseLevel):
        return draw_lease(rng, level)
    return _draw_stock(rng, level) if isinstance(level, StockLevel) else _draw_full(rng, level)


def site_of(level: PickLevel, layout: Layout) -> Site:
    """Return the site of a level with a given layout."""
    return Site(
        layout,
        capacity=level.capacity,
        decay=level.decay,
        walk_cost=level.walk_cost,
        announced=level.announced,
    )


def _draw_pick(rng: np.random.Generator, level: PickLevel) -> dict[str, Any]:
    """Draw a shift."""
    layout = AisleLayout(level.aisles, level.rows)
    slots = [cell.name for cell in layout.slots()]
    count = int(rng.integers(level.orders[0], level.orders[1] + 1))
    orders: list[dict[str, Any]] = []
    for number in range(1, count + 1):
        release = int(rng.integers(level.spread * count + 1)) if number > 2 else 0
        chosen = rng.choice(len(slots), int(rng.integers(1, level.lines + 1)), replace=False)
        units = [
            int(rng.integers(2, level.units + 1))
            if level.units > 1 and rng.random() < _LARGER_LINE
            else 1
            for _ in chosen
        ]
        orders.append(
            {
                "value": int(rng.integers(_VALUES[0], _VALUES[1] + 1)),
                "due": release + int(rng.integers(10, max(level.due * count, 11) + 1)),
                "release": release,
                "lines": [[slots[i], n] for i, n in zip(chosen, units, strict=True)],
            }
        )
    orders.sort(key=itemgetter("release"))
    return {
        "mode": "pick",
        "site": site_of(level, layout).plain(),
        "orders": [{"id": f"O{n}", **order} for n, order in enumerate(orders, start=1)],
        "stock": None,
    }


def _draw_stock(rng: np.random.Generator, level: StockLevel) -> dict[str, Any]:
    """Draw a stretch of days to keep items in stock; demand differs from day to day."""
    days = level.reviews * level.review
    items = []
    for number in range(1, level.items + 1):
        usual = rng.uniform(*_USUAL_DEMAND)
        means = np.maximum(usual * rng.choice(_PACES, size=days) * rng.uniform(0.8, 1.2, days), 0.1)
        items.append(draw_item(rng, level, number, means.round(1).tolist()))
    return {"mode": "stock", "days": days, "review": level.review, "items": items}


def _draw_supply(rng: np.random.Generator, level: SupplyLevel) -> dict[str, Any]:
    """Draw an article to buy, and how its demand will change, which is not shown."""
    pattern = draw_pattern(rng, level.periods)
    return {
        "mode": "supply",
        "periods": level.periods,
        "promised": level.promised,
        "reliable": level.reliable,
        "profit": int(rng.choice(level.profits)),
        "holding": 1,
        "history": draw_units(pattern, rng)[:HISTORY],
        "pattern": pattern,
        "leads": list(level.leads),
    }


def draw_item(
    rng: np.random.Generator, level: StockLevel, number: int, means: Sequence[float]
) -> dict[str, Any]:
    """Draw the terms of an item with a known mean demand by day, taken as Poisson.

    What a unit lost costs, of what a unit left over does, ranges so widely that no level of safety
    suits all items.
    """
    lead = int(rng.choice(level.leads))
    slow = float(rng.choice(level.slow)) if lead == 1 else 0.0
    reach = lead + level.review
    cover = max(sum(means[day : day + reach]) for day in range(len(means)))
    mean = sum(means) / len(means)
    holding = int(rng.integers(1, 5))
    return {
        "sku": f"S{number}",
        "stock": int(rng.integers(round(2 * mean) + 1)),
        "due": [int(rng.integers(round(mean) + 1)) for _ in range(lead - 1 + (slow > 0.0))],
        "demand": {"poisson": list(means)},
        "lead": lead,
        "slow": slow,
        "holding": holding,
        "lost": max(1, round(holding * float(np.exp(rng.uniform(*np.log(_LOST_TO_HOLDING)))))),
        "fixed": int(rng.integers(level.fixed + 1)),
        "leftover": int(rng.integers(_MOST_LEFTOVER + 1)),
        "room": round(cover + 2.5 * cover**0.5) + 2,
    }


def _draw_full(rng: np.random.Generator, level: FullLevel) -> dict[str, Any]:
    """Draw a shop; its orders are drawn when it is solved."""
    layout = AisleLayout(level.aisles, level.rows)
    site = Site(layout, level.capacity, decay=30.0, walk_cost=0.02, pickers=level.pickers)
    slots = [cell.name for cell in layout.slots()]
    places = rng.choice(len(slots), level.items, replace=False)
    weights = rng.integers(1, 5, size=level.items).tolist()
    means = _mean_units(weights, sum(level.orders) / 2)
    items = []
    for number, (place, mean) in enumerate(zip(places, means, strict=True), start=1):
        lead = int(rng.choice(level.leads))
        cover = mean * (lead + 1)
        room = round(cover + 4 * cover**0.5) + 4
        stock = round(mean * lead) + int(rng.integers(1, 4))
        items.append(
            {
                "sku": f"S{number}",
                "slot": slots[place],
                "stock": stock,
                "due": [int(rng.integers(min(round(mean), room - stock) + 1))] * (lead - 1),
                "demand": {"about": mean},
                "lead": lead,
                "slow": 0,
                "holding": level.holding,
                "lost": 1,
                "fixed": 0.5,
                "leftover": 0,
                "room": room,
            }
        )
    return {
        "mode": "full",
        "site": site.plain(),
        "days": level.days,
        "review": 1,
        "items": items,
        "book": {
            "orders": list(level.orders),
            "weights": weights,
            "values": list(_VALUES),
            "due": [10, level.due],
            "second_line": _SECOND_LINE,
            "second_unit": _LARGER_LINE,
        },
    }


def _mean_units(weights: Sequence[int], orders: float) -> list[float]:
    """Return the expected units a day of items drawn by weight, rounded to two decimals.

    The first line of an order is drawn by weight, the second one, if any, by weight among the rest.
    """
    share = [weight / sum(weights) for weight in weights]
    units = orders * (1 + _LARGER_LINE)
    second = [
        sum(p * q / (1 - p) for j, p in enumerate(share) if j != i) for i, q in enumerate(share)
    ]
    return [round(units * (p + _SECOND_LINE * q), 2) for p, q in zip(share, second, strict=True)]


def draw_demand(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[int]]:
    """Draw the units asked for, by item and day."""
    return [
        [int(rng.choice(len(shares), p=shares)) for shares in item.model.demand]
        for item in read_items(instance)
    ]


def draw_course(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw the units asked for and the lead times of `supply`, by period."""
    demand = draw_units(instance["pattern"], rng, instance["history"])[HISTORY:]
    leads = instance["leads"]
    drawn = [leads[at] for at in rng.integers(len(leads), size=len(demand))]
    return {"demand": demand, "leads": drawn}


def draw_late(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[int]]:
    """Draw whether an order placed at a review takes a day longer (1) or not (0), by item."""
    return [
        (rng.random(item.model.reviews) < item.model.slow).astype(int).tolist()
        for item in read_items(instance)
    ]


def draw_books(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[dict[str, Any]]]:
    """Draw the orders of every day."""
    book = instance["book"]
    slots = [entry["slot"] for entry in instance["items"]]
    weights = np.array(book["weights"])
    days = []
    for _ in range(int(instance["days"])):
        orders = []
        for number in range(1, int(rng.integers(book["orders"][0], book["orders"][1] + 1)) + 1):
            lines = 1 + int(rng.random() < book["second_line"])
            chosen = rng.choice(len(slots), lines, replace=False, p=weights / weights.sum())
            orders.append(
                {
                    "id": f"O{number}",
                    "value": int(rng.integers(book["values"][0], book["values"][1] + 1)),
                    "due": int(rng.integers(book["due"][0], book["due"][1] + 1)),
                    "release": 0,
                    "lines": [
                        [slots[i], 1 + int(rng.random() < book["second_unit"])] for i in chosen
                    ],
                }
            )
        days.append(orders)
    return days
