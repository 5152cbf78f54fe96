"""Scripted policies. All but the oracle use only what the Turns have shown."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.house import House
from tokengym.envs.energy.oracle import UNSAFE, plan
from tokengym.envs.energy.plant import Commands
from tokengym.envs.energy.rules import Rule, hold, self_consumption, time_of_use
from tokengym.envs.energy.world import EnergyWorld, Shown

_Policy = Callable[[World, Turn, np.random.Generator], str]
_NOISE = 0.3
_MARGIN = 0.25


def null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """0 kW of everything, whatever the reserve asks."""
    return _reply(world, (0.0,) * len(_energy(world).shown.plant.devices))


def random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Uniform over the power of each device, in tenths of a kW."""
    return _reply(world, tuple(round(rng.uniform(low, high), 1) for low, high in _ranges(world)))


def mpc(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Plan to the end on the shown forecasts, play the first step, plan again."""
    shown = _energy(world).shown
    plant = shown.plant
    if isinstance(plant, House):
        # Weather is met with a margin in K; this step needs none, its weather is known.
        now = shown.step + 1
        low = plant.low[:now] + tuple(least + _MARGIN for least in plant.low[now:])
        plant = replace(plant, low=low, high=plant.high - _MARGIN)
    planned = plan(plant, shown.step, shown.state, UNSAFE)
    if planned is None:
        return _reply(world, hold(shown.plant, shown.step, shown.state))
    # Hundredths, rounded towards more stored energy: what is shown is rounded down.
    first = planned.commands[0]
    return _reply(world, tuple(math.ceil(power * 100.0 - 1e-6) / 100.0 for power in first))


def noisy(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """The time-of-use rule with Gaussian noise, in tenths of a kW: a policy that explores."""
    shown = _energy(world).shown
    wanted = time_of_use(shown.plant, shown.step, shown.state)
    powers = zip(wanted, _ranges(world), strict=True)
    return _reply(
        world,
        tuple(round(power + _NOISE * high * rng.normal(), 1) for power, (_, high) in powers),
    )


def oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Read the optimal plan from the Task's answer."""
    energy = _energy(world)
    return _reply(world, energy.optimal_commands, digits=12)


def _by(rule: Rule) -> _Policy:
    def policy(world: World, turn: Turn, rng: np.random.Generator) -> str:
        shown: Shown = _energy(world).shown
        return _reply(world, rule(shown.plant, shown.step, shown.state))

    policy.__doc__ = rule.__doc__
    return policy


def _energy(world: World) -> EnergyWorld:
    if not isinstance(world, EnergyWorld):
        raise TypeError(f"these policies play the energy world, got {type(world).__name__}")
    return world


def _reply(world: World, commands: Commands, digits: int = 2) -> str:
    devices = _energy(world).shown.plant.devices
    return "\n".join(
        f"{device} {_number(power, digits)}"
        for device, power in zip(devices, commands, strict=True)
    )


def _number(power: float, digits: int) -> str:
    text = f"{power:.{digits}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _ranges(world: World) -> list[tuple[float, float]]:
    """Least and most kW by device, as the opening states them."""
    plant = _energy(world).shown.plant
    if isinstance(plant, House):
        return [(0.0, plant.power)]
    ranges = [(-plant.power, plant.power)]
    if plant.rating:
        ranges.append((0.0, 0.9 * plant.rating))
    if plant.car:
        ranges.append((0.0, plant.car[4]))
    return ranges


BASELINES: Mapping[str, _Policy] = MappingProxyType(
    {
        "null": null,
        "random": random,
        "hold": _by(hold),
        "self_consumption": _by(self_consumption),
        "time_of_use": _by(time_of_use),
        "noisy": noisy,
        "mpc": mpc,
        "oracle": oracle,
    }
)
