"""Policies that ignore the Task: orders by number, the same reorders or price every time."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.games import GAMES
from tokengym.envs.warehouse.levels import LEVELS
from tokengym.envs.warehouse.world import WarehouseWorld


def blind(world: World) -> Mapping[str, Policy]:
    """Return policies by what they do.

    They know what kind of reply is asked for and how many replies were given, but no Task's orders,
    slots, stock or costs.
    """
    level = LEVELS[world.level]
    return {name: partial(_reply, rule) for name, rule in GAMES[level.mode].blind(level).items()}


def _reply(rule: Callable[[int], str], world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return rule(WarehouseWorld.cast(world).session.turns)
