"""Drawing shifts of picking."""

from dataclasses import dataclass
from operator import itemgetter
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.warehouse.games.picking.orders import Site
from tokengym.envs.warehouse.layout import AisleLayout, Layout

VALUES = (4, 12)
LARGER_LINE = 0.35
"""Share of lines above one unit."""


@dataclass(frozen=True)
class PickLevel:
    """A level of picking.

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

    mode: ClassVar[str] = "pick"

    def site(self, layout: Layout) -> Site:
        """Return the site of a level with a given layout."""
        return Site(
            layout,
            capacity=self.capacity,
            decay=self.decay,
            walk_cost=self.walk_cost,
            announced=self.announced,
        )


def draw(rng: np.random.Generator, level: PickLevel) -> dict[str, Any]:
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
            if level.units > 1 and rng.random() < LARGER_LINE
            else 1
            for _ in chosen
        ]
        orders.append(
            {
                "value": int(rng.integers(VALUES[0], VALUES[1] + 1)),
                "due": release + int(rng.integers(10, max(level.due * count, 11) + 1)),
                "release": release,
                "lines": [[slots[i], n] for i, n in zip(chosen, units, strict=True)],
            }
        )
    orders.sort(key=itemgetter("release"))
    return {
        "mode": "pick",
        "site": level.site(layout).plain(),
        "orders": [{"id": f"O{n}", **order} for n, order in enumerate(orders, start=1)],
        "stock": None,
    }
