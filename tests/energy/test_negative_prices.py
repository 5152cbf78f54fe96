"""Laws of negative prices: the programs stay exact where a linear relaxation would burn energy."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.contract.planners.energy import Operator
from tests.energy.days import days_file
from tests.energy.drawn import plant_of, world_of
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import play
from tokengym.envs.energy.microgrid import Microgrid
from tokengym.envs.energy.oracle import optimum, simulate
from tokengym.envs.energy.plants import Plant
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import baselines


def turned(plant: Plant, by: float) -> Microgrid:
    """The same home with every third price and sale price below 0."""
    assert isinstance(plant, Microgrid)
    price = tuple(-by if step % 3 == 0 else p for step, p in enumerate(plant.price))
    resale = tuple(-by / 2 if step % 4 == 0 else p for step, p in enumerate(plant.resale))
    return replace(plant, price=price, resale=resale, price_of_extra=0.0)


@pytest.fixture
def negative(tmp_path: Path) -> EnergyWorld:
    """A world over days with a windy noon."""

    def price(hour: float) -> float:
        return -0.6 if 11 <= hour < 15 else (0.5 if 16 <= hour < 20 else 0.2)

    path = days_file(tmp_path / "wind.csv", price=price, resale=lambda hour: price(hour) - 0.05)
    return world_of("small", data=path)


@pytest.mark.parametrize(("index", "by"), [(0, 0.1), (1, 0.5), (2, 1.0), (0, 0.0), (1, 0.0)])
def test_no_run_beats_the_optimum_at_odd_prices(index: int, by: float) -> None:
    """Below 0, or 0.2 a kWh more for what is sold than for what is bought."""
    grid = plant_of("small", index)
    dear = replace(grid, resale=tuple(price + 0.2 for price in grid.price))
    grid = turned(grid, by) if by else dear
    best = optimum(grid)
    assert best is not None
    assert abs(simulate(grid, best.commands).money - best.cost) <= 1e-9
    rng = np.random.default_rng(index)
    for _ in range(150):
        noise = rng.normal(0.0, rng.choice([0.05, 0.5, 3.0]), grid.steps)
        shaken = [(power[0] + n,) for power, n in zip(best.commands, noise, strict=True)]
        run = simulate(grid, tuple(shaken))
        assert any(run.safety) or run.money >= best.cost - 1e-5


@pytest.mark.parametrize("battery", [-3.0, 0.0, 2.0])
def test_a_step_costs_the_least_one_meter_allows(battery: float) -> None:
    grid = turned(plant_of("day", 0), 0.3)
    for step in range(grid.steps):
        outcome = grid.advance(step, grid.initial, (battery,))
        needed = grid.load[step] + outcome.done[0]
        ways = np.linspace(max(needed - grid.pv[step], -grid.export_cap), needed, 400)
        cheapest = min(
            power * (grid.price[step] if power > 0.0 else grid.resale[step]) for power in ways
        )
        missed = min(max(grid.reserve[step] - outcome.state.stored, 0.0), 0.06)
        spent = outcome.money - grid.dt * grid.wear * abs(outcome.done[0])
        spent -= grid.price_of_missing * missed
        assert spent <= grid.dt * cheapest + 1e-9
        assert math.isclose(spent, grid.dt * cheapest, abs_tol=0.02)


@pytest.mark.nightly
def test_a_planner_of_texts_is_paid_to_buy(negative: EnergyWorld) -> None:
    tasks = [task for task in negative.first_tasks("train", 4) if min(task.instance["price"]) < 0]
    assert tasks
    for task in tasks[:1]:
        turn = negative.start(task)
        assert "price -60" in turn.text
        assert "you are paid for what you buy" in turn.text
        operator = Operator()
        while not turn.done:
            turn = negative.reply(operator.reply(turn.text))
        operator.end(turn.text)
        planned = negative.returns["operator"]
        honest = play(negative, task, baselines("energy")["mpc"])
        assert planned > honest.returns["operator"] - 0.01
        best = play(negative, task, baselines("energy")["oracle"])
        assert best.returns["operator"] == 1.0


def test_credit_is_refused_at_negative_prices(tmp_path: Path) -> None:
    path = days_file(tmp_path / "wind.csv", price=lambda hour: -0.1 if hour < 5 else 0.3)
    with pytest.raises(OptionError, match="never negative"):
        world_of("small", data=path, credit=True)
