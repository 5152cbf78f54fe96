"""Drawing shifts of picking."""

from operator import itemgetter
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.picking.clauses import draw_clauses
from tokengym.envs.warehouse.games.picking.orders import PickingSite
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.levels import PickLevel

LARGER_LINE = 0.35
"""Share of lines above one unit."""


def site_of(level: PickLevel, layout: Layout) -> PickingSite:
    """Return the site of a level with a given layout."""
    return PickingSite(
        layout,
        capacity=level.capacity,
        decay=level.decay,
        walk_cost=level.walk_cost,
        announced=level.announced,
        restated=level.restated,
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
                "value": int(rng.integers(level.values[0], level.values[1] + 1)),
                "due": release + int(rng.integers(10, max(level.due * count, 11) + 1)),
                "release": release,
                "lines": [[slots[i], n] for i, n in zip(chosen, units, strict=True)],
            }
        )
    orders.sort(key=itemgetter("release"))
    book = [{"id": f"O{n}", **order} for n, order in enumerate(orders, start=1)]
    stated = {"clauses": draw_clauses(rng, book)} if level.clauses else {}
    site = site_of(level, layout).plain()
    return {"mode": "pick", "site": site, "orders": book, "stock": None, **stated}
