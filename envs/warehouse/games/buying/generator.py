"""Drawing articles to buy: the ten patterns of changing demand of InventoryBench."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokengym.envs.warehouse.levels import BuyingLevel
from tokengym.rewards.arrays import Floats

HISTORY = 5
"""Periods before the first whose demand is shown."""
_BASE = (60.0, 140.0)
"""Range of the usual demand of a period."""
_SPREADS = (0.15, 0.25, 0.4)
"""Standard deviations of a period's demand, as shares of the usual one."""
PATTERNS = (
    *("stationary", "increase", "decrease", "rising", "falling"),
    *("spread", "seasonal", "regimes", "spike", "persistent"),
)


def draw(rng: np.random.Generator, level: BuyingLevel) -> dict[str, Any]:
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


def draw_pattern(rng: np.random.Generator, periods: int) -> dict[str, Any]:
    """Draw how demand changes over the periods shown before the first and those played.

    Returns:
        `means` and `spreads` by period, and `persistence`: the share of what a period differs from
        its mean by that the next one differs by too.
    """
    pattern = PATTERNS[int(rng.integers(len(PATTERNS)))]
    base = float(rng.uniform(*_BASE))
    at = np.arange(HISTORY + periods) - HISTORY
    changes = sorted(rng.choice(np.arange(periods // 5, 4 * periods // 5), 2, replace=False))
    means = base * _shape(pattern, rng, at / periods, [at >= change for change in changes])
    spreads = np.full(len(at), base * float(rng.choice(_SPREADS)))
    if pattern == "spread":
        spreads = np.where(at >= changes[0], base * float(rng.choice(_SPREADS)), spreads)
    return {
        "means": means.round(1).tolist(),
        "spreads": spreads.round(1).tolist(),
        "persistence": round(float(rng.uniform(0.5, 0.9)), 2) if pattern == "persistent" else 0.0,
    }


def _shape(pattern: str, rng: np.random.Generator, time: Floats, after: Sequence[Any]) -> Floats:
    """Return the mean of every period as a multiple of the usual one; `time` runs from 0 to 1."""
    size = float(rng.uniform(0.4, 1.0))
    shape = np.ones(len(time))
    if pattern == "increase":
        shape += size * after[0]
    elif pattern == "decrease":
        shape -= 0.7 * size * after[0]
    elif pattern == "rising":
        shape += 1.5 * size * time
    elif pattern == "falling":
        shape -= 0.8 * size * time
    elif pattern == "seasonal":
        cycles, phase = rng.uniform(2.0, 6.0), rng.uniform(0.0, 2.0 * np.pi)
        shape += 0.6 * size * np.sin(2.0 * np.pi * cycles * time + phase)
    elif pattern == "regimes":
        shape += size * after[0] - rng.uniform(0.3, 1.4) * size * after[1]
    elif pattern == "spike":
        shape += float(rng.choice((-0.8, 1.2))) * size * (after[0] & ~after[1])
    return shape


def draw_units(
    pattern: Mapping[str, Any], rng: np.random.Generator, known: Sequence[int] = ()
) -> list[int]:
    """Draw the units asked for in every period that is not `known`, in order of periods."""
    units = list(known)
    means, spreads = pattern["means"], pattern["spreads"]
    persistence = float(pattern["persistence"])
    fresh = (1.0 - persistence**2) ** 0.5
    swing = (units[-1] - means[len(units) - 1]) / spreads[len(units) - 1] if units else rng.normal()
    for mean, spread in zip(means[len(units) :], spreads[len(units) :], strict=True):
        swing = persistence * swing + fresh * float(rng.normal())
        units.append(max(0, round(mean + spread * swing)))
    return units


def draw_course(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Draw the units asked for and the lead times by period."""
    demand = draw_units(instance["pattern"], rng, instance["history"])[HISTORY:]
    leads = instance["leads"]
    drawn = [leads[at] for at in rng.integers(len(leads), size=len(demand))]
    return {"demand": demand, "leads": drawn}
