"""Policies that ignore the Task: orders by number, the same reorders or price every time."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.levels import LEVELS, LeaseLevel, SupplyLevel
from tokengym.envs.warehouse.world import WarehouseWorld

_BATCHES = (1, 2, 3)
_UNITS = (0, 1, 2, 3, 5, 8, 12, 20)
_PRICES = (5, 8, 10, 12, 15, 20, 25, 30)
_BOUGHT = (0, 20, 40, 60, 80, 100, 120, 160)


def blind(world: World) -> Mapping[str, Callable[[World, Turn, np.random.Generator], str]]:
    """Return policies by what they do: trips of the next orders by number, constant reorders.

    They know what kind of reply is asked for and how many replies were given, but no Task's orders,
    slots, stock or costs.
    """
    level = LEVELS[world.level]
    if isinstance(level, SupplyLevel):
        return {f"orders of {units}": _by_number(1, 1, units) for units in _BOUGHT}
    if isinstance(level, LeaseLevel):
        return {f"quotes of {price}": _by_price(price) for price in _PRICES}
    items = getattr(level, "items", 0)
    return {
        f"trips of {batch}, reorders of {units}": _by_number(batch, items, units)
        for batch, units in product(_BATCHES, _UNITS)
    }


def _by_number(
    batch: int, items: int, units: int
) -> Callable[[World, Turn, np.random.Generator], str]:
    def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
        if not isinstance(world, WarehouseWorld):
            raise TypeError(f"these policies play WarehouseWorld, got {type(world).__name__}")
        first = batch * world.session.turns
        trip = f"TRIP {','.join(f'O{first + k + 1}' for k in range(batch))}"
        lines = [f"REORDER S{item + 1} {units}" for item in range(items) if units]
        # The last line of a kind counts: a reply may hold a trip and reorders.
        return "\n".join([trip, *(lines or ["REORDER NONE"])])

    return play


def _by_price(price: int) -> Callable[[World, Turn, np.random.Generator], str]:
    return lambda _world, _turn, _rng: f"QUOTE {price}"
