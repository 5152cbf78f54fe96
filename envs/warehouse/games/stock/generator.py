"""Drawing items to keep in stock, and what happens to them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.stock.rules import read_items
from tokengym.envs.warehouse.levels import StockLevel

_PACES = (0.2, 1.0, 2.0)
"""Demand of a day as a multiple of the usual one: a quiet day, a usual one, a busy one."""
_LOST_TO_HOLDING = (0.5, 40.0)
"""Range of the cost of a unit lost, as a multiple of that of a unit left; drawn log-uniformly."""
_MOST_LEFTOVER = 10
_SHARED_ROOM = 0.7
"""Room that items share, as a part of what each of them has."""
_MOST_SHARED = 5
"""Room of an item that shares deliveries: three of them have 46,656 states with orders."""


def draw(rng: np.random.Generator, level: StockLevel) -> dict[str, Any]:
    """Draw a stretch of days to keep items in stock; demand differs from day to day."""
    days = level.reviews * level.review
    items = []
    for number in range(1, level.items + 1):
        usual = rng.uniform(*level.usual)
        means = np.maximum(usual * rng.choice(_PACES, size=days) * rng.uniform(0.8, 1.2, days), 0.1)
        items.append(draw_item(rng, level, number, means.round(1).tolist()))
    return instance_of(rng, level, items)


def instance_of(
    rng: np.random.Generator, level: StockLevel, items: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the instance of items; what they share, if anything, is drawn: deliveries, room."""
    days = level.reviews * level.review
    instance = {"mode": "stock", "days": days, "review": level.review, "items": items}
    if level.delivery is None:
        return instance
    low, high = level.delivery
    room = max(round(_SHARED_ROOM * sum(i["room"] for i in items)), sum(i["stock"] for i in items))
    return {**instance, "shared": {"delivery": int(rng.integers(low, high + 1)), "room": room}}


def draw_item(
    rng: np.random.Generator, level: StockLevel, number: int, means: Sequence[float]
) -> dict[str, Any]:
    """Draw the terms of an item with a known mean demand by day, taken as Poisson.

    The ratio of a lost unit's cost to a leftover unit's ranges so widely that no level of safety
    suits all items.
    """
    lead = int(rng.choice(level.leads))
    slow = float(rng.choice(level.slow)) if lead == 1 else 0.0
    reach = lead + level.review
    cover = max(sum(means[day : day + reach]) for day in range(len(means)))
    mean = sum(means) / len(means)
    room = round(cover + 2.5 * cover**0.5) + 2
    if level.delivery is not None:
        room = min(room, _MOST_SHARED)
    holding = int(rng.integers(1, 5))
    return {
        "sku": f"S{number}",
        "stock": int(rng.integers(min(round(2 * mean), room) + 1)),
        "due": [int(rng.integers(round(mean) + 1)) for _ in range(lead - 1 + (slow > 0.0))],
        "demand": {"poisson": list(means)},
        "lead": lead,
        "slow": slow,
        "holding": holding,
        "lost": max(1, round(holding * float(np.exp(rng.uniform(*np.log(_LOST_TO_HOLDING)))))),
        "fixed": int(rng.integers(level.fixed + 1)),
        "leftover": int(rng.integers(_MOST_LEFTOVER + 1)),
        "room": room,
    }


def draw_demand(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[int]]:
    """Draw the units asked for, by item and day."""
    return [
        [int(rng.choice(len(shares), p=shares)) for shares in item.model.demand]
        for item in read_items(instance)
    ]


def draw_late(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[int]]:
    """Draw whether an order placed at a review takes a day longer (1) or not (0), by item."""
    return [
        (rng.random(item.model.reviews) < item.model.slow).astype(int).tolist()
        for item in read_items(instance)
    ]
