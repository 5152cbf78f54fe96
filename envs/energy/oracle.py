"""The cheapest safe plan of a plant whose series are known: exact, by linear programming.

Where prices are negative a linear program would charge and discharge at once, to be paid for the
energy that it burns, or buy and sell at once; binaries forbid both.

With the true series it is the perfect-foresight optimum: it knows every outage and every cloud, so
no policy that must live through the day reaches it. On the shown forecasts it is one step of model
predictive control.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import LOST_LOAD, Car, Microgrid
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.program import Program, Term
from tokengym.envs.energy.step_result import Commands, State

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


def optimum(plant: Microgrid) -> DispatchPlan | None:
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
    if any(simulated.safety) or abs(simulated.money - planned.cost) > _GAP:
        return None
    return DispatchPlan(rounded, simulated.money)


@lru_cache(maxsize=_PLANS_KEPT)
def plan(
    plant: Microgrid, first: int, state: State, unsafe: float | None = None
) -> DispatchPlan | None:
    """Return the cheapest commands from `first` on for the series as the plant has them.

    Args:
        plant: true or foreseen.
        first: first step to plan.
        state: state before it.
        unsafe: money per unit of safety cost; `None` forbids any.

    Returns:
        the plan, or `None` if none is safe.
    """
    program = Program()
    powers = _microgrid(program, plant, first, state, unsafe)
    solved = program.solve()
    if solved is None:
        return None
    values = solved[0].tolist()
    commands = tuple(
        tuple(math.fsum(values[variable] * sign for variable, sign in device) for device in devices)
        for devices in powers
    )
    return DispatchPlan(commands, solved[1])


def _microgrid(
    program: Program, grid: Microgrid, first: int, state: State, unsafe: float | None
) -> list[list[list[Term]]]:
    """Return the powers of each device by step, as terms."""
    dt = grid.dt
    burns = min(grid.price[first:], default=0.0) < 0.0
    powers = []
    before: Term | None = None
    warmth: Term | None = None
    charged: list[Term] = []
    met: list[tuple[int, int]] = []
    for step in range(first, grid.steps):
        charge = program.variable(dt * grid.wear, high=grid.power)
        discharge = program.variable(dt * grid.wear, high=grid.power)
        level = program.variable(high=grid.capacity)
        change = ((charge, -dt * grid.efficiency), (discharge, dt / grid.efficiency))
        before = _follows(program, (level, 1.0), change, before, 1.0, state.stored)
        if not grid.house:
            short = _missed(program, grid, unsafe)
            program.row(grid.reserve[step], math.inf, before, *short)
        if burns:
            # A battery cannot charge and discharge at once, as would pay at a negative price.
            charges = program.variable(high=1.0, whole=True)
            program.row(-math.inf, 0.0, (charge, 1.0), (charges, -grid.power))
            program.row(-math.inf, grid.power, (discharge, 1.0), (charges, grid.power))

        exchange = _exchange(program, grid, step, unsafe)
        balance = [(charge, 1.0), (discharge, -1.0), *exchange]
        devices: list[list[Term]] = [[(charge, 1.0), (discharge, -1.0)]]
        curtailed = program.variable(high=grid.pv[step])
        balance.append((curtailed, 1.0))
        met.append((exchange[0][0], curtailed))
        if grid.car:
            devices.append([])
            if grid.at_home(step):
                ev = program.variable(high=grid.car.power)
                charged.append((ev, dt))
                devices[-1].append((ev, 1.0))
        if grid.house:
            heat = program.variable(high=grid.house.power)
            devices.append([(heat, 1.0)])
            warmth = _warm(program, grid, step, heat, warmth, state.indoor, unsafe)
        surplus = grid.pv[step] - grid.load[step]
        balance.extend(itertools.chain.from_iterable(devices[1:]))
        program.row(surplus, surplus, *balance)
        powers.append(devices)
    _close(program, before, state.stored, grid.energy, grid)
    if grid.house:
        _close(program, warmth, state.indoor, grid.house.temperature, grid.house)
    if grid.demand_charge:
        _charge_for_peak(program, grid, first, state.peak, met)
    if grid.car and first < grid.car.departs:
        _meet_need(program, grid.car, state.charged, charged)
    return powers


def _follows(
    program: Program,
    store: Term,
    change: Sequence[Term],
    before: Term | None,
    keep: float,
    start: float,
    gain: float = 0.0,
) -> Term:
    """Let a store be what is kept of it, `start` at first, plus `gain` and minus the terms."""
    if before is None:
        program.row(gain + keep * start, gain + keep * start, store, *change)
    else:
        program.row(gain, gain, store, *change, (before[0], -keep))
    return store


def _charge_for_peak(
    program: Program, grid: Microgrid, first: int, peak: float, met: Sequence[tuple[int, int]]
) -> None:
    """Charge for what the highest import exceeds `peak` by.

    To keep imports low, panels do not use sun at a negative price: there it is left unused, unless
    the connection gives no more in its place.

    Args:
        program: the program.
        grid: the home.
        first: the first step that is planned.
        peak: the highest import before it, kW.
        met: by step what is bought and what of the sun is curtailed, variables.
    """
    higher = program.variable(grid.demand_charge)
    for step, (bought, curtailed) in enumerate(met, first):
        program.row(-math.inf, peak, (bought, 1.0), (higher, -1.0))
        if grid.price[step] < 0.0 >= grid.resale[step]:
            unused = program.variable(high=1.0, whole=True)
            program.row(0.0, math.inf, (curtailed, 1.0), (unused, -grid.pv[step]))
            full = grid.import_cap * grid.up[step]
            program.row(full, math.inf, (bought, 1.0), (unused, full))


def _meet_need(program: Program, car: Car, charged: float, later: Sequence[Term]) -> None:
    """Charge for what the car lacks when it leaves, and let it take no more than its need."""
    lacking = (program.variable(car.price_of_missing), 1.0)
    program.row(car.need - charged, math.inf, *later, lacking)
    if later:
        program.row(-math.inf, car.need - charged, *later)


def _warm(
    program: Program,
    grid: Microgrid,
    step: int,
    heat: int,
    before: Term | None,
    indoor: float,
    unsafe: float | None,
) -> Term:
    """Add the temperature after a step, kept in its band, and return it.

    Args:
        program: the program.
        grid: a home with a house.
        step: the step.
        heat: the heat pump's power, a variable.
        before: the temperature before the step, if that is a variable.
        indoor: °C before the first step that is planned.
        unsafe: see `plan`.
    """
    assert grid.house
    drift, rise = grid.warming[step]
    warmth = (program.variable(low=-math.inf), 1.0)
    cold, hot = (_missed(program, grid, unsafe) for _ in range(2))
    program.row(grid.low[step], math.inf, warmth, *cold)
    program.row(-math.inf, grid.house.high, warmth, *((over, -1.0) for over, _ in hot))
    keep = grid.house.keep(grid.dt)
    return _follows(program, warmth, [(heat, -rise)], before, keep, indoor, drift)


def _missed(program: Program, plant: Microgrid, unsafe: float | None) -> list[Term]:
    """Shortfall below a limit, as terms of its row."""
    within = [(program.variable(plant.price_of_miss, high=plant.slack), 1.0)]
    return within if unsafe is None else [*within, (program.variable(unsafe), 1.0)]


def _exchange(
    program: Program, grid: Microgrid, step: int, unsafe: float | None
) -> tuple[Term, ...]:
    """Buying, selling and load left unserved, as terms of the power balance."""
    dt, up = grid.dt, grid.up[step]
    bought = program.variable(dt * grid.price[step], high=grid.import_cap * up)
    sold = program.variable(-dt * grid.resale[step], high=grid.export_cap * up)
    if grid.resale[step] > grid.price[step]:
        # Selling pays more than buying costs: one meter cannot do both at once.
        buys = program.variable(high=1.0, whole=True)
        program.row(-math.inf, 0.0, (bought, 1.0), (buys, -grid.import_cap))
        program.row(-math.inf, grid.export_cap, (sold, 1.0), (buys, grid.export_cap))
    critical = grid.critical * grid.load[step]
    unserved = program.variable(dt * LOST_LOAD, high=grid.load[step] - critical)
    terms = ((bought, -1.0), (sold, 1.0), (unserved, -1.0))
    if unsafe is None:
        return terms
    dark = program.variable(dt * (LOST_LOAD + unsafe), high=critical)
    return (*terms, (dark, -1.0))


def _close(
    program: Program, last: Term | None, now: float, start: float, priced: Microgrid | House
) -> None:
    """Charge for less in store than at the start, pay for more, at the prices of battery or house.

    Args:
        program: the program.
        last: what is stored at the end, a variable; `None` where no step is planned.
        now: what is stored now.
        start: what was stored at the start.
        priced: what has the prices.
    """
    missing = program.variable(priced.price_of_missing)
    extra = program.variable(-priced.price_of_extra)
    if last is None:
        program.row(now - start, now - start, (extra, 1.0), (missing, -1.0))
    else:
        program.row(start, start, last, (extra, -1.0), (missing, 1.0))
