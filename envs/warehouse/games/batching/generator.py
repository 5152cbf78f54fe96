"""Drawing orders to batch, as Henn and Wäscher drew theirs: articles anywhere on the floor."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tokengym.envs.warehouse.levels import BatchLevel


def draw(rng: np.random.Generator, level: BatchLevel) -> dict[str, Any]:
    """Draw orders; the lengths of the floor are those of Henn and Wäscher's."""
    orders = []
    for _ in range(level.orders):
        count = int(rng.integers(level.articles[0], level.articles[1] + 1))
        places = rng.integers((0, 1), (level.aisles, level.rows + 1), size=(count, 2))
        orders.append(places.tolist())
    floor = {"aisles": level.aisles, "rows": level.rows, "cell": 1, "pitch": 5, "margin": 1}
    return instance_of(floor, level.capacity, orders)


def instance_of(
    floor: Mapping[str, float], capacity: int, orders: list[list[list[int]]]
) -> dict[str, Any]:
    """Return an instance.

    Args:
        floor: number of `aisles` and `rows`, and the lengths `cell`, `pitch` and `margin`.
        capacity: articles that a trip carries.
        orders: by order, aisle (from 0) and row (from 1) of every article.
    """
    return {
        "mode": "batch",
        "floor": dict(floor),
        "capacity": capacity,
        "orders": [sorted(places) for places in orders],
    }
