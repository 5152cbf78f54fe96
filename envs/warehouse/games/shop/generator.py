"""Drawing shops, and their orders of every day."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.picking.generator import LARGER_LINE, VALUES
from tokengym.envs.warehouse.games.picking.orders import Site
from tokengym.envs.warehouse.layout import AisleLayout
from tokengym.envs.warehouse.levels import ShopLevel

_SECOND_LINE = 0.5
"""Share of orders with two lines."""


def draw(rng: np.random.Generator, level: ShopLevel) -> dict[str, Any]:
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
                "fixed": level.fixed,
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
            "values": list(VALUES),
            "due": [10, level.due],
            "second_line": _SECOND_LINE,
            "second_unit": LARGER_LINE,
        },
    }


def _mean_units(weights: Sequence[int], orders: float) -> list[float]:
    """Return the expected units a day of items drawn by weight, rounded to two decimals.

    The first line of an order is drawn by weight, the second one, if any, by weight among the rest.
    """
    share = np.array(weights) / sum(weights)
    odds = share / (1 - share)
    lines = share + _SECOND_LINE * share * (odds.sum() - odds)
    return [round(units, 2) for units in (orders * (1 + LARGER_LINE) * lines).tolist()]


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
