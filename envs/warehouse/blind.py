"""Policies that do not read the Task: orders by their numbers, the same reorders every time."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.levels import LEVELS
from tokengym.envs.warehouse.world import WarehouseWorld

_BATCHES = (1, 2, 3)
_UNITS = (0, 1, 2, 3, 5, 8, 12, 20)


def blind(world: World) -> Mapping[str, Callable[[World, Turn, np.random.Generator], str]]:
    """Return policies by what they do: trips of the next orders by number, constant reorders.

    They know what kind of reply is asked for and how many replies were given, but no Task's orders,
    slots, stock or costs.
    """
    return {
        f"trips of {batch}, reorders of {units}": _by_number(batch, units)
        for batch, units in product(_BATCHES, _UNITS)
    }


def _by_number(batch: int, units: int) -> Callable[[World, Turn, np.random.Generator], str]:
    def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
        if not isinstance(world, WarehouseWorld):
            raise TypeError(f"these policies play WarehouseWorld, got {type(world).__name__}")
        first = batch * world.session.turns
        trip = f"TRIP {','.join(f'O{first + k + 1}' for k in range(batch))}"
        items = getattr(LEVELS[world.level], "items", 0)
        lines = [f"REORDER S{item + 1} {units}" for item in range(items) if units]
        # The last line of a kind counts: a reply may hold a trip and reorders.
        return "\n".join([trip, *(lines or ["REORDER NONE"])])

    return play
