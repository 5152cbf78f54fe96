"""The optimum of days with a car, against dynamic programming over a fine grid.

It shares no code with the plant or the program. What it finds is a run of its own, so nothing may
be cheaper than the optimum; and the finer its grid, the nearer it comes.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tokengym.envs.core.task import Task, to_plain_json
from tokengym.envs.energy.generator import draw_microgrid
from tokengym.envs.energy.levels import LEVELS
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import optimum
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.rules import reference

PlantOf = Callable[[str, int], Plant]
TaskOf = Callable[[str, int], Task]
Floats = npt.NDArray[np.float64]

TENTH = 0.1
"""Of a kW: the car charges in hours of so many tenths of a kWh."""


def stores(grid: Microgrid) -> Floats:
    """The energies that a plan may hold at the ends of steps, in kWh."""
    some = [grid.energy, *grid.schedule, *grid.reserve]
    return np.union1d(np.linspace(0.0, grid.capacity, 120), some)


def moving(grid: Microgrid, step: int, store_E: Floats, car: float) -> Floats:
    """Least money of a safe step from one energy to another, shape (from, to); else infinity.

    Args:
        grid: the home.
        step: the step.
        store_E: the energies.
        car: kW that the car takes.
    """
    dt, load, pv = grid.dt, grid.load[step], grid.pv[step]
    imports, exports = (grid.import_cap * grid.up[step], grid.export_cap * grid.up[step])
    change_EE = store_E[None, :] - (1.0 - grid.leak) * store_E[:, None]
    charge = np.maximum(change_EE, 0.0) / grid.efficiency / dt
    discharge = np.maximum(-change_EE, 0.0) * grid.efficiency / dt
    dark = (1.0 - grid.critical) * load
    lacking = load + car + charge - discharge - pv
    bought = np.clip(lacking, 0.0, imports)
    unserved = np.maximum(lacking - imports, 0.0)
    sold = np.clip(-lacking, 0.0, exports)
    money = grid.price[step] * bought - grid.resale[step] * sold + 10.0 * unserved
    money = dt * (money + grid.wear * (charge + discharge))
    possible = (
        (unserved <= dark + 1e-9)
        # Neither the car nor the battery is charged while load is shed.
        & ((unserved <= 1e-9) | ((charge <= 1e-9) & (car == 0.0)))
        # Sun may be thrown away, the battery's energy may not.
        & (discharge <= load + car + exports + 1e-9)
    )
    allowed = (charge <= grid.power + 1e-9) & (discharge <= grid.power + 1e-9)
    missed_E = np.maximum(grid.reserve[step] - store_E, 0.0)
    money = money + (grid.price_of_missing + grid.spike) * missed_E
    return np.where(allowed & possible & (missed_E <= 0.06), money, np.inf)


def cheapest(grid: Microgrid) -> float:
    """The least money of a safe run over the grid's energies and tenths of the car's charge."""
    store_E = stores(grid)
    arrives, _, need, low, high, late = grid.car or (0, 0, 0.0, 0.0, 0.0, 0.0)
    departs = grid.departure
    charge_Q = TENTH * np.arange(round((need + low) / TENTH) + 1 if grid.car else 1)
    extra_E = store_E - grid.energy
    closing_E = np.where(
        extra_E > 0.0, -grid.price_of_extra * extra_E, -grid.price_of_missing * extra_E
    )
    cost_EQ = np.repeat(closing_E[:, None], len(charge_Q), axis=1)
    for step in reversed(range(grid.steps)):
        if grid.car and step == departs - 1:
            cost_EQ = cost_EQ + late * np.maximum(need - charge_Q, 0.0)
        powers = [0]
        if grid.car and arrives <= step < departs:
            powers += range(round(low / TENTH), round(high / TENTH) + 1)
        found = np.full(cost_EQ.shape, np.inf)
        for power in powers:
            money_EE = moving(grid, step, store_E, TENTH * power)
            after = cost_EQ[:, power:]
            best = (money_EE[:, :, None] + after[None, :, :]).min(axis=1)
            kept = found[:, : after.shape[1]]
            np.minimum(kept, best, out=kept)
        cost_EQ = found
    start = int(np.flatnonzero(np.isclose(store_E, grid.energy))[0])
    return float(cost_EQ[start, 0])


def home(plant: Plant) -> Microgrid:
    assert isinstance(plant, Microgrid)
    return plant


@pytest.mark.nightly
@pytest.mark.parametrize("index", range(3))
def test_no_run_over_a_grid_is_cheaper_than_the_optimum_and_the_cheapest_is_near(
    index: int, plant_of: PlantOf, task_of: TaskOf
) -> None:
    answer = task_of("operations", index).answer
    found = cheapest(home(plant_of("operations", index)))
    assert found >= answer["optimum"] - 1e-9
    assert found <= answer["optimum"] + 0.02 * (answer["reference"] - answer["optimum"])


@pytest.mark.parametrize(
    ("change", "near"),
    [
        # Three hours at full power, with prices that speak for any two of them.
        ({"car": (3, 6, 11.1, 1.4, 3.7, 2.0)}, 0.03),
        ({"car": (3, 6, 11.1, 1.4, 3.7, 0.05)}, 0.03),
        # A car that needs less than an hour of the least power takes more than it needs.
        ({"car": (3, 9, 0.5, 1.4, 3.7, 2.0)}, 0.03),
        ({"car": (3, 9, 6.0, 1.4, 3.7, 0.3)}, 0.03),
    ],
)
def test_so_it_is_where_every_limit_of_a_device_binds(
    change: dict[str, Any], near: float, plant_of: PlantOf
) -> None:
    departure = change.get("car", (0, 0))[1]
    grid = replace(
        home(plant_of("operations", 0)), departure=departure, leaving=0.0, spike=0.0, **change
    )
    best = optimum(grid)
    assert best is not None
    assert best.cost - 1e-9 <= cheapest(grid) <= best.cost + near


@pytest.mark.nightly
@pytest.mark.parametrize("level", [name for name, level in LEVELS.items() if not level.days])
def test_no_instance_is_refused_for_want_of_a_certificate(level: str) -> None:
    """A program that is wrong now and then would hide behind the next draw."""
    rng = np.random.default_rng(0)
    row = LEVELS[level]
    drawn = (draw_microgrid(rng, row) for _ in range(30))
    plants: list[Any] = [plant_from(to_plain_json(one)) for one in drawn]
    gains = []
    for plant in plants:
        hold = reference(plant)
        if not any(hold.safety):
            best = optimum(plant)
            assert best is not None
            gains.append(hold.money - best.cost)
    # Nor for other reasons: hardly any cannot be held safely or leaves less than 0.5 to gain.
    assert len(gains) >= (27 if level == "outages" else 30)
    assert sum(gain >= 0.5 for gain in gains) >= len(gains) - 1
