"""What each level draws. Times, steps and units are whole numbers, values and costs money."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from tokengym.envs.warehouse.layout import AisleLayout
from tokengym.envs.warehouse.orders import Site

_VALUES = (4, 12)
_LARGER_LINE = 0.35


@dataclass(frozen=True)
class PickLevel:
    """A level of `pick`.

    Attributes:
        orders: fewest and most orders.
        lines: most lines of an order.
        units: most units of a line.
        capacity: units of a trip.
        aisles: number of aisles.
        rows: slots in an aisle.
        due: latest due date per order of the book; due dates lie between half a lone trip and this.
        decay: time in which a late order's value falls to 1/e.
        spread: releases lie in the first `spread` time units per order; 0 for none.
        announced: whether orders are shown before their release.
    """

    orders: tuple[int, int]
    lines: int
    units: int
    capacity: int
    aisles: int
    rows: int
    due: int
    decay: float = 30.0
    spread: int = 0
    announced: bool = True
    walk_cost: float = 0.02


LEVELS: Mapping[str, PickLevel] = MappingProxyType(
    {
        "pick_small": PickLevel((3, 4), 2, 1, 3, 3, 5, 10, decay=20.0),
        "pick": PickLevel((8, 8), 2, 2, 6, 4, 8, 10),
        "pick_large": PickLevel((10, 12), 2, 2, 8, 5, 10, 9, spread=5),
        "pick_online": PickLevel((10, 10), 2, 2, 8, 5, 10, 9, spread=5, announced=False),
    }
)


def draw_pick(rng: np.random.Generator, level: PickLevel) -> dict[str, Any]:
    """Draw a shift."""
    layout = AisleLayout(level.aisles, level.rows)
    site = Site(
        layout,
        capacity=level.capacity,
        decay=level.decay,
        walk_cost=level.walk_cost,
        announced=level.announced,
    )
    slots = [cell.name for cell in layout.slots()]
    count = int(rng.integers(level.orders[0], level.orders[1] + 1))
    orders = []
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
    orders.sort(key=lambda order: order["release"])
    return {
        "mode": "pick",
        "site": site.plain(),
        "orders": [{"id": f"O{n}", **order} for n, order in enumerate(orders, start=1)],
        "stock": None,
    }
