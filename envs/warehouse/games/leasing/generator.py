"""Drawing warehouses to lease out, and the customers who come."""

from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.leasing.rules import LeaseModel
from tokengym.envs.warehouse.levels import LeaseLevel

_LIMITS = (3.0, 15.0)
"""Range of the least limit of a kind, $ a bay and month; drawn log-uniformly."""
_RANGES = (1.8, 5.0)
"""Range of the greatest limit of a kind, as a multiple of its least one."""
_BUSY = 3.0
"""How much likelier a kind is in its season."""


def draw(rng: np.random.Generator, level: LeaseLevel) -> dict[str, Any]:
    """Draw a warehouse: types of customers, each with a season, and bays taken at the start."""
    kinds = []
    for name in ascii_uppercase[: level.kinds]:
        low = round(float(np.exp(rng.uniform(*np.log(_LIMITS)))))
        kinds.append(
            {
                "name": name,
                "bays": int(rng.integers(level.bays // 4, 3 * level.bays // 4 + 1)),
                "months": int(rng.integers(1, level.longest + 1)),
                "low": low,
                "high": round(low * float(rng.uniform(*_RANGES))),
            }
        )
    # The contract that needs most months sets how far ahead bays come back.
    kinds[int(rng.integers(level.kinds))]["months"] = level.longest
    month = np.arange(level.months)[:, None]
    begins = rng.integers(level.months, size=level.kinds)
    season = (month - begins) % level.months < level.months // 3
    weights = rng.uniform(0.5, 1.5, level.kinds) * np.where(season, _BUSY, 1.0)
    chances = np.floor(100 * weights / weights.sum(axis=1, keepdims=True))
    chances[:, 0] += 100 - chances.sum(axis=1)
    # Who asks in the first month is shown at the start, so it belongs to the instance.
    chances[0] = 100 * (np.arange(level.kinds) == rng.choice(level.kinds, p=chances[0] / 100))
    start = rng.integers(level.bays // level.longest + 1, size=level.longest - 1)
    return {
        "mode": "lease",
        "bays": level.bays,
        "kinds": kinds,
        "chances": chances.astype(np.int64).tolist(),
        "start": start.tolist(),
    }


def draw_customers(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw the kind and the limit of every month's customer."""
    model = LeaseModel.of(instance)
    kinds = [int(rng.choice(len(model.kinds), p=shares)) for shares in model.chances]
    limits = [
        int(rng.integers(model.kinds[kind].low, model.kinds[kind].high + 1)) for kind in kinds
    ]
    return {"kinds": kinds, "limits": limits}
