"""The cheapest safe plan of a plant whose series are known: exact, by linear programming.

Where prices are negative a linear program would charge and discharge at once, to be paid for the
energy that it burns, or buy and sell at once; binaries forbid both.

With the true series it is the perfect-foresight optimum: it knows every outage and every cloud, so
no policy that must live through the day reaches it. On the shown forecasts it is one step of model
predictive control.
"""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import LOST_LOAD, Microgrid
from tokengym.envs.energy.plants import Plant, Storage
from tokengym.envs.energy.program import Program, Term
from tokengym.envs.energy.step_result import TOLERANCE, Commands, State

UNSAFE = 2.0 * LOST_LOAD
"""Money per unit of safety cost where a plan may break the floor; keeping it never costs more."""
_DIGITS = 12
_GAP = 1e-9
_PLANS_KEPT = 1024
"""A rule that replans at every step is played on the same Tasks again by checks and reports."""


class DispatchPlan(NamedTuple):
    """Commands by step from the first planned step on, and what they cost to the end."""

    commands: tuple[Commands, ...]
    cost: float


class Simulation(NamedTuple):
    """Money and safety cost by step of a run of commands over the whole horizon."""

    money: float
    safety: tuple[float, ...]


def is_broken(plant: Plant, safety: Sequence[float]) -> bool:
    """Return whether the safety costs of the steps exceed what the plant's budget allows."""
    return sum(safety) > plant.budget + (TOLERANCE if plant.budget else 0.0)


def simulate(plant: Plant, commands: tuple[Commands, ...]) -> Simulation:
    """Run commands through the plant from its start to its end."""
    return simulate_rule(plant, lambda step, state: commands[step])


def simulate_rule(plant: Plant, rule: Callable[[int, State], Commands]) -> Simulation:
    """Run the commands of a function of step and state through the plant, from start to end."""
    state, money, safety = plant.initial, 0.0, []
    for step in range(plant.steps):
        outcome = plant.advance(step, state, rule(step, state))
        state = outcome.state
        money += outcome.money
        safety.append(outcome.safety)
    return Simulation(money + plant.closing(state), tuple(safety))


def optimum(plant: Storage) -> DispatchPlan | None:
    """Return the cheapest safe plan, certified by a simulation, or `None` if there is none.

    The program relaxes the plant (it may shed load to charge), so its cost is a lower bound; a
    simulation that reaches the same cost, safely, proves the plan optimal.
    """
    planned = plan(plant, 0, plant.initial)
    if planned is None:
        return None
    rounded = tuple(
        tuple(round(power, _DIGITS) + 0.0 for power in command) for command in planned.commands
    )
    simulated = simulate(plant, rounded)
    if is_broken(plant, simulated.safety) or abs(simulated.money - planned.cost) > _GAP:
        return None
    return DispatchPlan(rounded, simulated.money)


@lru_cache(maxsize=_PLANS_KEPT)
def plan(
    plant: Storage,
    first: int,
    state: State,
    unsafe: float | None = None,
    *,
    spent: float = 0.0,
    relaxed: bool = False,
) -> DispatchPlan | None:
    """Return the cheapest commands from `first` on for the series as the plant has them.

    Args:
        plant: true or foreseen.
        first: first step to plan.
        state: state before it.
        unsafe: money per unit of safety cost beyond the plant's budget; `None` forbids any.
        spent: how much of the budget is used up.
        relaxed: leave out the binaries of negative prices, as a linear program has to.

    Returns:
        the plan, or `None` if none is safe.
    """
    program = Program()
    left = max(plant.budget - spent, 0.0)
    # With a budget to spend, safety costs are free up to it.
    per_unit = 0.0 if unsafe is None and left else unsafe
    if isinstance(plant, Microgrid):
        powers, missed = _microgrid(program, plant, first, state, per_unit, relaxed)
    else:
        powers, missed = _house(program, plant, first, state, per_unit)
    if left and unsafe is None:
        program.row(-math.inf, left, *missed)
    elif left and unsafe is not None:
        free = program.variable(-unsafe, high=left)
        program.row(0.0, math.inf, *missed, (free, -1.0))
    solved = program.solve()
    if solved is None:
        return None
    values = solved[0].tolist()
    commands = tuple(
        tuple(math.fsum(values[variable] * sign for variable, sign in device) for device in devices)
        for devices in powers
    )
    return DispatchPlan(commands, solved[1])


def _house(
    program: Program, house: House, first: int, state: State, unsafe: float | None
) -> tuple[list[list[list[Term]]], list[Term]]:
    powers = []
    missed: list[Term] = []
    before: Term | None = None
    for step in range(first, house.steps):
        power = program.variable(house.dt * house.price[step], high=house.power)
        low, high = house.low[step], house.high
        warmth = (program.variable(low=-math.inf), 1.0)
        cold, too_cold = _missed(program, house, unsafe)
        hot, too_hot = _missed(program, house, unsafe)
        program.row(low, math.inf, warmth, *cold)
        program.row(-math.inf, high, warmth, *((over, -1.0) for over, _ in hot))
        missed.extend([*too_cold, *too_hot])
        gained = (power, -house.dt * house.cop / house.capacity)
        drift = house.drift(step)
        if before is None:
            drift += house.keep * state.stored
            program.row(drift, drift, warmth, gained)
        else:
            program.row(drift, drift, warmth, gained, (before[0], -house.keep))
        before = warmth
        powers.append([[(power, 1.0)]])
    _close(program, house, before, state.stored, house.temperature)
    return powers, missed


def _microgrid(
    program: Program, grid: Microgrid, first: int, state: State, unsafe: float | None, relaxed: bool
) -> tuple[list[list[list[Term]]], list[Term]]:
    dt, keep = grid.dt, 1.0 - grid.leak
    burns = not relaxed and min(grid.price[first:], default=0.0) < 0.0
    powers = []
    missed: list[Term] = []
    before: Term | None = None
    charged: list[Term] = []
    for step in range(first, grid.steps):
        charge = program.variable(dt * grid.wear, high=grid.power)
        discharge = program.variable(dt * grid.wear, high=grid.power)
        level = program.variable(high=grid.capacity)
        change = ((charge, -dt * grid.efficiency), (discharge, dt / grid.efficiency))
        if before is None:
            program.row(keep * state.stored, keep * state.stored, (level, 1.0), *change)
        else:
            program.row(0.0, 0.0, (level, 1.0), *change, (before[0], -keep))
        before = (level, 1.0)
        short, too_short = _missed(program, grid, unsafe)
        program.row(grid.reserve[step], math.inf, before, *short)
        missed.extend(too_short)
        if burns:
            # A battery cannot charge and discharge at once, as would pay at a negative price.
            charges = program.variable(high=1.0, whole=True)
            program.row(-math.inf, 0.0, (charge, 1.0), (charges, -grid.power))
            program.row(-math.inf, grid.power, (discharge, 1.0), (charges, grid.power))

        exchange, dark = _exchange(program, grid, step, unsafe, relaxed)
        missed.extend(dark)
        balance = [(charge, 1.0), (discharge, -1.0), *exchange]
        devices: list[list[Term]] = [[(charge, 1.0), (discharge, -1.0)]]
        curtailed = program.variable(high=grid.pv[step])
        balance.append((curtailed, 1.0))
        if grid.car:
            devices.append([])
            if grid.at_home(step):
                ev = _switched(program, grid.car[3], grid.car[4])
                balance.append((ev, 1.0))
                charged.append((ev, dt))
                devices[-1].append((ev, 1.0))
        surplus = grid.pv[step] - grid.load[step]
        program.row(surplus, surplus, *balance)
        powers.append(devices)
    _close(program, grid, before, state.stored, grid.energy)
    if grid.car and first < grid.departure:
        _, _, need, least, _, late = grid.car
        program.row(need - state.charged, math.inf, *charged, (program.variable(late), 1.0))
        if charged:
            program.row(-math.inf, need + least * dt - state.charged, *charged)
    return powers, missed


def _missed(
    program: Program, plant: Storage, unsafe: float | None
) -> tuple[list[Term], list[Term]]:
    """What a limit is missed by, as terms of its row; and those of them that are safety costs."""
    within = [(program.variable(plant.price_of_miss, high=plant.slack), 1.0)]
    beyond = [] if unsafe is None else [(program.variable(unsafe), 1.0)]
    return within + beyond, beyond


def _exchange(
    program: Program, grid: Microgrid, step: int, unsafe: float | None, relaxed: bool
) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    """Buying, selling and load left unserved, as terms of the power balance and safety costs."""
    dt, up = grid.dt, grid.up[step]
    bought = program.variable(dt * grid.price[step], high=grid.import_cap * up)
    sold = program.variable(-dt * grid.resale[step], high=grid.export_cap * up)
    if grid.resale[step] > grid.price[step] and not relaxed:
        # Selling pays more than buying costs: one meter cannot do both at once.
        buys = program.variable(high=1.0, whole=True)
        program.row(-math.inf, 0.0, (bought, 1.0), (buys, -grid.import_cap))
        program.row(-math.inf, grid.export_cap, (sold, 1.0), (buys, grid.export_cap))
    critical = grid.critical * grid.load[step]
    unserved = program.variable(dt * LOST_LOAD, high=grid.load[step] - critical)
    terms = ((bought, -1.0), (sold, 1.0), (unserved, -1.0))
    if unsafe is None:
        return terms, ()
    dark = program.variable(dt * (LOST_LOAD + unsafe), high=critical)
    return (*terms, (dark, -1.0)), ((dark, dt),)


def _switched(program: Program, least: float, most: float) -> int:
    """A power that is either 0 or between `least` and `most`."""
    power = program.variable(high=most)
    running = program.variable(high=1.0, whole=True)
    program.row(0.0, math.inf, (power, 1.0), (running, -least))
    program.row(-math.inf, 0.0, (power, 1.0), (running, -most))
    return power


def _close(program: Program, plant: Storage, last: Term | None, now: float, start: float) -> None:
    """Charge for less stored energy than at the start, pay for more."""
    missing = program.variable(plant.price_of_missing)
    extra = program.variable(-plant.price_of_extra)
    if last is None:
        program.row(now - start, now - start, (extra, 1.0), (missing, -1.0))
    else:
        program.row(start, start, last, (extra, -1.0), (missing, 1.0))
