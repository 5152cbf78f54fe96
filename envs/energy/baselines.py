"""Scripted policies. All but the oracle use only what the Turns have shown."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.play import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.energy.dispatch import (
    SiteRule,
    cycle_charging,
    mean_day_plan,
    merit_order,
    one_unit_always,
    scenario_plan,
    worst_day_plan,
)
from tokengym.envs.energy.grammar import write_commands
from tokengym.envs.energy.oracle import UNSAFE, DispatchPlan, plan
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.prompt import cents
from tokengym.envs.energy.rules import (
    Rule,
    backward_pass,
    cheap_and_dear,
    hold,
    peak_shaving,
    self_consumption,
    time_of_use,
)
from tokengym.envs.energy.site import OffGridSite
from tokengym.envs.energy.step_result import Commands, rounded_down, rounded_up
from tokengym.envs.energy.world import EnergyWorld, Shown

_NOISE = 0.3
_GUARD = 0.1
"""K by which `mpc` plans to keep above the low of later steps: forecasts of the weather err."""
_ASCENT = 1.0
"""Money per unit by which a miss raises the multiplier of `lagrangian`."""


def null(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """0 kW of everything, whatever the reserve asks."""
    return _reply(world, (0.0,) * len(EnergyWorld.cast(world).shown.plant.devices))


def random(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Uniform over the power of each device, in tenths of a kW."""
    ranges = _ranges(EnergyWorld.cast(world).shown.plant)
    return _reply(world, tuple(round(rng.uniform(low, high), 1) for low, high in ranges))


def _replan(on_site: SiteRule, world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    """Plan to the end on the shown forecasts, play the first step, and replan; a site by a rule."""
    shown = EnergyWorld.cast(world).shown
    if isinstance(shown.plant, OffGridSite):
        return _reply(world, on_site(shown.plant, shown.step, shown.state))
    plant = shown.plant.guarded(shown.step, _GUARD)
    return _first_of(world, plan(plant, shown.step, shown.state, UNSAFE))


mpc: Policy = partial(_replan, mean_day_plan)
"""Model predictive control: at a site, of the mean day; demonstrations are its replies."""


def lagrangian(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Plan like `mpc`, but with a price on shortfalls instead of a limit: dual ascent.

    The price begins at twice the highest price of energy and rises with every miss by `_ASCENT`
    per unit.
    """
    shown = EnergyWorld.cast(world).shown
    if isinstance(shown.plant, OffGridSite):
        return _replan(mean_day_plan, world, turn, rng)
    dearest = max(map(abs, shown.plant.price))
    multiplier = sum((_ASCENT * missed for missed in shown.missed), 2.0 * dearest)
    return _first_of(world, plan(shown.plant, shown.step, shown.state, multiplier))


def noisy(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Time of use, at a site cycle charging, with Gaussian noise in tenths of a kW: it explores."""
    shown = EnergyWorld.cast(world).shown
    commands = _commands(time_of_use, cycle_charging, shown)
    powers = zip(commands, _ranges(shown.plant), strict=True)
    return _reply(
        world, tuple(round(power + _NOISE * high * rng.normal(), 1) for power, (_, high) in powers)
    )


def oracle(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Read the optimal plan from the Task's answer."""
    return _reply(world, EnergyWorld.cast(world).optimal_commands, decimals=12)


def _first_of(world: World, planned: DispatchPlan | None) -> str:
    """Write the first commands of a plan, or those of the safe hold if there is none."""
    if planned is None:
        shown = EnergyWorld.cast(world).shown
        return _reply(world, _commands(hold, one_unit_always, shown))
    return _reply(world, planned.commands[0])


def worked(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Command like `peak_shaving`, after a line of arithmetic that a small model can write.

    One line: energy below the reserve, or sun minus load; after a deficit also
    the price and the highest or, where that is it, energy minus reserve. The power of a heat pump
    follows from too much to be written down: it is added to the load.
    """
    shown = EnergyWorld.cast(world).shown
    plant, step = shown.plant, shown.step
    if isinstance(plant, OffGridSite):
        return _reply(world, cycle_charging(plant, step, shown.state))
    battery, *others = peak_shaving(plant, step, shown.state)
    energy = rounded_down(shown.state.stored)
    reserve, price = plant.reserve[step], plant.price[step]
    dearest = cheap_and_dear(plant)[1]
    sun, load, up = plant.pv[step], plant.load[step], plant.up[step]
    steps = ""
    if plant.house:
        heat = others[-1]
        steps, load = f"{load:g}+{heat:g}={load + heat:.6g}, ", round(load + heat, 2)
    if up and energy < reserve:
        steps = f"{energy:g}<{reserve:g}"
    else:
        steps += _difference(sun, load)
        if up and sun < load and dearest <= price:
            steps += f", {_difference(energy, reserve)}"
        elif up and sun < load:
            steps += f", {cents(price)} of {cents(dearest)}"
    # Tenths, rounded towards more stored energy.
    commands = (rounded_up(battery, decimals=1), *others)
    return f"{steps}\n{_reply(world, commands)}"


def _difference(minuend: float, subtrahend: float) -> str:
    return f"{minuend:g}-{subtrahend:g}={round(minuend - subtrahend, 2):g}"


def _follow(
    rule: Rule, on_site: SiteRule, world: World, _turn: Turn, _rng: np.random.Generator
) -> str:
    return _reply(world, _commands(rule, on_site, EnergyWorld.cast(world).shown))


def _commands(rule: Rule, on_site: SiteRule, shown: Shown) -> Commands:
    """Return what a rule commands, at an off-grid site what another one does."""
    if isinstance(shown.plant, OffGridSite):
        return on_site(shown.plant, shown.step, shown.state)
    return rule(shown.plant, shown.step, shown.state)


def _reply(world: World, commands: Commands, decimals: int = 2) -> str:
    devices = EnergyWorld.cast(world).compiled.plant.devices
    return write_commands(commands, devices, decimals=decimals)


def _ranges(plant: Plant) -> list[tuple[float, float]]:
    """Return least and most kW by device, as the opening states them."""
    if isinstance(plant, OffGridSite):
        return [(0.0, unit.rating) for unit in plant.units]
    ranges = [(-plant.power, plant.power)]
    if plant.car:
        ranges.append((0.0, plant.car.power))
    if plant.house:
        ranges.append((0.0, plant.house.power))
    return ranges


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": null,
        "random": random,
        "hold": partial(_follow, hold, one_unit_always),
        "self_consumption": partial(_follow, self_consumption, one_unit_always),
        "time_of_use": partial(_follow, time_of_use, cycle_charging),
        "backward": partial(_follow, backward_pass, merit_order),
        "cycle_charging": partial(_follow, time_of_use, cycle_charging),
        "merit_order": partial(_follow, backward_pass, merit_order),
        "worked": worked,
        "noisy": noisy,
        "lagrangian": lagrangian,
        "mpc": mpc,
        "worst_day": partial(_replan, worst_day_plan),
        "stochastic": partial(_replan, scenario_plan),
        "oracle": oracle,
    }
)
