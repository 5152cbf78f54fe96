"""Rules and planners of an off-grid site, functions of what is shown: commands in kW.

Each takes the site as foreseen at an hour and the state as seen.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tokengym.envs.energy.commitment import PossibleDay, planned
from tokengym.envs.energy.oracle import Simulation, simulate_rule
from tokengym.envs.energy.rules import scale_of
from tokengym.envs.energy.site import OffGridSite, Unit, shares
from tokengym.envs.energy.step_result import Commands, State
from tokengym.rewards.arrays import Floats

SiteRule = Callable[[OffGridSite, int, State], Commands]

_CYCLE = 0.8
"""Share of the battery, above its floor, to which `cycle_charging` goes on charging."""


def one_unit_always(site: OffGridSite, hour: int, state: State) -> Commands:
    """Run the big unit at the mean need, and the small one where the worst need may exceed it."""
    mean, worst = _needs(site, hour)
    big, small = site.units
    joins = worst > big.rating + _spare(site, state.stored)
    return (min(max(mean, big.least), big.rating), small.least if joins else 0.0)


def cycle_charging(site: OffGridSite, hour: int, state: State) -> Commands:
    """Rest while the battery serves the worst need; else run at full power and charge it.

    Source: Barley and Winn, Optimal dispatch strategy in remote hybrid power systems, Solar Energy
    58 (1996).
    """
    mean, worst = _needs(site, hour)
    spare, room = _spare(site, state.stored), _room(site, state.stored)
    enough = site.floor + _CYCLE * (site.capacity - site.floor)
    rests = worst <= spare and not (any(state.running) and state.stored < enough)
    chosen = [
        on
        for on in ((0, 0), (0, 1), (1, 0), (1, 1))
        if _may(on, state) and (rests or any(on)) and _most(site.units, on) + spare >= worst
    ]
    return shares(site.units, chosen[0] if chosen else (1, 1), mean + room)


def merit_order(site: OffGridSite, hour: int, state: State) -> Commands:
    """Run the units that serve the mean need of the next hours at least cost, and charge with them.

    It looks as far ahead as a run of the small unit lasts, as if no unit started or stopped until
    then, values stored energy at the big unit's full cost, and what would be missing at what a
    start of that unit costs an hour of its run.
    """
    chance_D, need_DT = _needs_of_days(site, hour)
    big, small = site.units
    needs = np.average(need_DT, axis=0, weights=chance_D)[hour : hour + small.hours].tolist()
    worst = need_DT[:, hour].max()
    stored_worth = big.no_load / big.rating + big.fuel
    missing_costs = big.start / big.hours + big.no_load + big.fuel

    def money(on: Sequence[int]) -> float:
        pairs = zip(site.units, on, state.running, strict=True)
        total = sum(unit.start for unit, runs, before in pairs if runs and not before)
        stored = state.stored
        for need in needs:
            powers = shares(site.units, on, need + _room(site, stored))
            for unit, runs, power in zip(site.units, on, powers, strict=True):
                total += unit.no_load * runs + unit.fuel * power
            lacking = need - sum(powers)
            given = min(max(lacking, 0.0), _spare(site, stored))
            taken = min(max(-lacking, 0.0), _room(site, stored))
            stored += site.efficiency * taken - given
            total += site.wear * (given + taken) + missing_costs * max(lacking - given, 0.0)
        return total - stored_worth * stored

    safe = [
        on
        for on in itertools.product((0, 1), repeat=2)
        if _may(on, state) and _most(site.units, on) + _spare(site, state.stored) >= worst
    ]
    return shares(
        site.units, min(safe, key=money, default=(1, 1)), needs[0] + _room(site, state.stored)
    )


def mean_day_plan(site: OffGridSite, hour: int, state: State) -> Commands:
    """Plan as if the mean of the days that may still come were certain, and replan every hour."""
    chance_D, need_DT = _needs_of_days(site, hour)
    return _plan_one(site, hour, state, np.average(need_DT, axis=0, weights=chance_D))


def worst_day_plan(site: OffGridSite, hour: int, state: State) -> Commands:
    """Plan as if the largest need of each hour came of all days that may, and replan every hour."""
    return _plan_one(site, hour, state, _needs_of_days(site, hour)[1].max(axis=0))


def scenario_plan(site: OffGridSite, hour: int, state: State) -> Commands:
    """Plan for all days that may still come, by their chances, and for what will be known when."""
    days = tuple(map(PossibleDay, site.chances, site.loads, site.suns))
    return planned(site, days, (hour, site.possible(hour)), state)


def solve_site(site: OffGridSite) -> Mapping[str, Any]:
    """Return the answer of a Task: what the scenario plan does and costs on the day that comes.

    The reference is `one_unit_always`; the scale is by means over the days that the site lists.
    """
    held, best = run_by_day(site, one_unit_always), run_by_day(site, scenario_plan)
    means = [np.dot(site.chances, [run.money for run in runs]) for runs in (held, best)]
    commands = []

    def noted(hour: int, state: State) -> Commands:
        shown = site.foreseen(hour), hour, site.seen(hour, state)
        commands.append(scenario_plan(*shown))
        return commands[-1]

    return {
        "optimum": simulate_rule(site, noted).money,
        "reference": held[site.day].money,
        "scale": scale_of(*map(float, means)),
        "plan": commands,
    }


def run_by_day(site: OffGridSite, rule: SiteRule) -> list[Simulation]:
    """Run a rule through each day that a site lists; it reads only what is shown."""

    def run(day: OffGridSite) -> Simulation:
        return simulate_rule(
            day, lambda hour, state: rule(day.foreseen(hour), hour, day.seen(hour, state))
        )

    return [run(replace(site, day=number)) for number in range(len(site.chances))]


def _plan_one(site: OffGridSite, hour: int, state: State, need_T: Floats) -> Commands:
    day = PossibleDay(1.0, tuple(need_T.tolist()), (0.0,) * site.steps)
    return planned(site, (day,), (hour, (0,)), state)


def _needs_of_days(site: OffGridSite, hour: int) -> tuple[Floats, Floats]:
    """Return chances and needs, load less sun in kW by hour, of the days that may still come."""
    days = list(site.possible(hour))
    return np.array(site.chances)[days], (np.array(site.loads) - np.array(site.suns))[days]


def _needs(site: OffGridSite, hour: int) -> tuple[float, float]:
    """Return the mean and the largest need of an hour, kW."""
    chance_D, need_DT = _needs_of_days(site, hour)
    return float(np.average(need_DT[:, hour], weights=chance_D)), float(need_DT[:, hour].max())


def _spare(site: OffGridSite, stored: float) -> float:
    """Return what the battery can give in an hour above its floor, kWh."""
    return min(site.power, max(stored - site.floor, 0.0))


def _room(site: OffGridSite, stored: float) -> float:
    """Return what the battery can take in an hour, kWh."""
    return min(site.power, (site.capacity - stored) / site.efficiency)


def _may(on: Sequence[int], state: State) -> bool:
    """Return whether no unit would stop that must go on running."""
    return all(runs or hours <= 1 for runs, hours in zip(on, state.running, strict=True))


def _most(units: Sequence[Unit], on: Sequence[int]) -> float:
    return sum(unit.rating for unit, runs in zip(units, on, strict=True) if runs)
