"""Policies that ignore the Task: the same powers in every home, on every day."""

from collections.abc import Mapping

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.world import EnergyWorld

_POWERS = (-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0)
_CHARGING = ((2, 1.0), (2, 2.0), (4, 1.0), (4, 2.0), (8, 1.0))


def blind(world: World) -> Mapping[str, Policy]:
    """Return policies by a description: constant powers, and charging for a while before idling.

    They know the devices and how many steps have passed, which are the same in every Task.
    """
    constant = {f"{power:g} kW": _schedule(0, 0.0, power) for power in _POWERS}
    charging = {
        f"{power:g} kW for {steps} steps": _schedule(steps, power, 0.0)
        for steps, power in _CHARGING
    }
    return constant | charging


def _schedule(steps: int, first: float, then: float) -> Policy:
    def play(world: World, turn: Turn, rng: np.random.Generator) -> str:
        shown = EnergyWorld.cast(world).shown
        power = first if shown.step < steps else then
        return "\n".join(f"{device} {power:.2f}" for device in shown.plant.devices)

    return play
