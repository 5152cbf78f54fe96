"""Scripted shift leads. All but the oracle use only what the Turns have shown."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse import rules
from tokengym.envs.warehouse.grammar import Done, Trip, Wait, write
from tokengym.envs.warehouse.orders import needs
from tokengym.envs.warehouse.rules import Rule
from tokengym.envs.warehouse.world import WarehouseWorld

_MOST_TOGETHER = 3

Policy = Callable[[World, Turn, np.random.Generator], str]


def _null(_world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    return write(Done())


def _random(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    floor = _warehouse(world).session.floor
    orders = rules.available(floor)
    if not orders:
        return write(Wait(int(rng.integers(1, 10))))
    count = int(rng.integers(1, min(len(orders), _MOST_TOGETHER) + 1))
    batch = [orders[i] for i in rng.permutation(len(orders))[:count]]
    stops = list(needs(batch))
    return write(
        Trip(
            tuple(order.id for order in batch),
            tuple(stops[i] for i in rng.permutation(len(stops))),
        )
    )


def _noisy(world: World, _turn: Turn, rng: np.random.Generator) -> str:
    floor = _warehouse(world).session.floor
    orders = rules.available(floor)
    if not orders:
        return write(rules.until_release(floor))
    ranked = sorted(orders, key=lambda o: o.due + 15 * rng.normal())
    return write(rules.exact_trip(floor, rules.fill(floor, ranked)))


def _oracle(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    session = _warehouse(world).session
    return session.problem.plan[session.turns]


def _by(rule: Rule) -> Policy:
    def reply(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
        return write(rule(_warehouse(world).session.floor))

    return reply


def _warehouse(world: World) -> WarehouseWorld:
    if isinstance(world, WarehouseWorld):
        return world
    raise TypeError(f"these policies play WarehouseWorld, got {type(world).__name__}")


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": _null,
        "random": _random,
        "fcfs": _by(rules.singles),
        "edd_sshape": _by(rules.earliest_due_s_shape),
        "edd_exact": _by(rules.earliest_due_exact),
        "noisy": _noisy,
        "oracle": _oracle,
    }
)
