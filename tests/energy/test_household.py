"""Laws of a household: its optimum is exact, its floor can be broken, its days are as stated."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.energy.drawn import plant_of
from tokengym.envs.core.task import to_plain_json
from tokengym.envs.energy.generator import draw_microgrid
from tokengym.envs.energy.levels import LEVELS
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import optimum, plan, simulate
from tokengym.envs.energy.plants import plant_from
from tokengym.rewards.arrays import Floats


@cache
def drawn(count: int) -> list[Microgrid]:
    rng = np.random.default_rng(11)
    rows = (draw_microgrid(rng, LEVELS["household"]) for _ in range(count))
    plants = [plant_from(to_plain_json(row)) for row in rows]
    return [plant for plant in plants if isinstance(plant, Microgrid)]


def least_cost(grid: Microgrid) -> float:
    """The least money by a program over flows alone: states are sums of flows, no variables.

    Each step has what is charged, given, driven (car), heated, bought, sold and thrown away; then
    come the peak, what battery and house have less and more at the end, and what the car lacks.
    """
    house, car, steps, eta = grid.house, grid.car, grid.steps, grid.efficiency
    assert house
    assert car
    flows = ("charge", "give", "drive", "heat", "buy", "sell", "waste")
    ends = ("peak", "less", "more", "colder", "warmer", "late")
    one, none = np.eye(steps), np.zeros((steps, steps))

    def rows(
        flow: Mapping[str, Floats], ending: Mapping[str, float], at: slice = slice(None)
    ) -> Floats:
        """Coefficients of some steps: a matrix of each flow, a number of each ending."""
        left = np.hstack([flow.get(name, none) for name in flows])[at]
        right = [np.full((len(left), 1), ending.get(name, 0.0)) for name in ends]
        return np.hstack([left, *right])

    age = np.subtract.outer(np.arange(steps), np.arange(steps))
    keep = house.keep(1.0)
    kept = np.where(age >= 0, keep ** np.maximum(age, 0), 0.0)
    sums = np.where(age >= 0, 1.0, 0.0)
    outside = np.array(grid.outside)
    cop = np.maximum(house.cop + house.slope * outside, 1.0)
    flow = house.loss * outside + house.gain + house.window * np.array(grid.pv)
    free = kept @ flow / house.capacity + house.temperature * keep ** np.arange(1, steps + 1)
    energy = {"charge": eta * sums, "give": -sums / eta}
    fallen = {name: -matrix for name, matrix in energy.items()}
    warmth = {"heat": kept * (cop / house.capacity)}
    cold = {"heat": -warmth["heat"]}
    last = slice(steps - 1, steps)
    driven = np.tile([float(grid.at_home(step)) for step in range(steps)], (steps, 1))
    most = [
        (rows(energy, {}), np.full(steps, grid.capacity - grid.energy)),
        (rows(fallen, {}), np.full(steps, grid.energy)),
        (rows(warmth, {}), house.high - free),
        (rows(cold, {}), free - np.array(grid.low)),
        (rows({"buy": one}, {"peak": -1.0}), np.zeros(steps)),
        (rows(fallen, {"less": -1.0}, last), np.zeros(1)),
        (rows(fallen, {"more": 1.0}, last), np.zeros(1)),
        (rows(cold, {"colder": -1.0}, last), free[last] - house.temperature),
        (rows(cold, {"warmer": 1.0}, last), free[last] - house.temperature),
        (rows({"drive": driven}, {}, last), np.array([car.need])),
        (rows({"drive": -driven}, {"late": -1.0}, last), np.array([-car.need])),
    ]
    drawn_from = {"charge": -one, "drive": -one, "heat": -one, "sell": -one, "waste": -one}
    prices: dict[str, float | Floats] = {"charge": grid.wear, "give": grid.wear}
    prices |= {"buy": np.array(grid.price), "sell": -np.array(grid.resale)}
    cost = np.concatenate([np.full(steps, prices.get(name, 0.0)) for name in flows])
    at_end = [grid.demand_charge, grid.price_of_missing, -grid.price_of_extra]
    at_end += [house.price_of_missing, -house.price_of_extra, car.price_of_missing]
    powers = (grid.power, grid.power, car.power, house.power, grid.import_cap, grid.export_cap)
    limits = np.concatenate([*(np.full(steps, power) for power in powers), np.array(grid.pv)])
    found = linprog(
        np.concatenate([cost, at_end]),
        A_ub=np.vstack([left for left, _ in most]),
        b_ub=np.concatenate([right for _, right in most]),
        A_eq=rows({**drawn_from, "give": one, "buy": one}, {}),
        b_eq=np.array(grid.load) - np.array(grid.pv),
        bounds=[*((0.0, limit) for limit in limits), *[(0.0, None)] * len(ends)],
        method="highs-ipm",
    )
    assert found.fun is not None, found.message
    return float(found.fun)


@pytest.mark.nightly
def test_a_program_over_flows_alone_finds_the_same_least_cost() -> None:
    compared = 0
    for grid in drawn(24):
        best = optimum(grid)
        if best is None or min(grid.price) < 0.0:
            continue
        compared += 1
        assert best.cost == pytest.approx(least_cost(grid), abs=1e-6)
    assert compared >= 20


@pytest.mark.nightly
def test_panels_do_not_trade_their_sun_against_the_peak() -> None:
    """At a negative price sun is left unused whatever the demand charge: plan and plant agree."""
    for grid in drawn(6):
        turned = tuple(-0.3 if step % 5 == 0 else one for step, one in enumerate(grid.price))
        lower = tuple(min(a, b - 0.1) for a, b in zip(grid.resale, turned, strict=True))
        negative = replace(grid, price=turned, resale=lower, demand_charge=2.0)
        best = optimum(negative)
        assert best is not None
        assert simulate(negative, best.commands).money == pytest.approx(best.cost, abs=1e-9)
        rng = np.random.default_rng(0)
        for _ in range(60):
            shaken = tuple(
                tuple(power + rng.normal(0.0, rng.choice([0.05, 0.5])) for power in command)
                for command in best.commands
            )
            run = simulate(negative, shaken)
            assert any(run.safety) or run.money >= best.cost - 1e-5


def test_a_later_plan_counts_the_peak_so_far() -> None:
    grid = plant_of("household", 0)
    planned = plan(grid, 0, grid.initial)
    assert planned is not None
    state, spent = grid.initial, 0.0
    for step in range(12):
        outcome = grid.advance(step, state, planned.commands[step])
        state, spent = outcome.state, spent + outcome.money
    rest = plan(grid, 12, state)
    assert rest is not None
    assert spent + rest.cost == pytest.approx(planned.cost, abs=1e-6)


def test_a_guarded_home_is_as_warm_now_and_warmer_later() -> None:
    """What `mpc` plans for: forecasts of the weather err, and heat that lacks comes too late."""
    grid = plant_of("household", 0)
    guarded = grid.guarded(5, 0.25)
    assert guarded.low[:6] == grid.low[:6]
    assert guarded.low[6:] == tuple(low + 0.25 for low in grid.low[6:])
    small = plant_of("small", 0)
    assert isinstance(small, Microgrid)
    assert small.guarded(5, 0.25) is small
