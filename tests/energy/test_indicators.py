"""Laws of the key performance indicators: counted from what was done, and averaged by policy."""

from pathlib import Path

import numpy as np
import pytest

from tests.energy.days import days_file
from tests.energy.drawn import world_of
from tokengym.envs.core.play import play
from tokengym.envs.core.turn import Turn
from tokengym.envs.energy.report import indicator_scores
from tokengym.envs.energy.world import EnergyWorld
from tokengym.rewards.estimates import Estimate


def play_zero(world: EnergyWorld) -> Turn:
    """Do nothing to the end."""
    return play(world, world.task("train", 0), lambda *_: "BATTERY 0").turns[-1]


def test_an_idle_battery_changes_nothing_at_home(tmp_path: Path) -> None:
    path = days_file(tmp_path / "home.csv")
    lines = path.read_text().splitlines()
    rows = [f"{line},{0.1 * (at % 5):.1f}" for at, line in enumerate(lines[1:])]
    path.write_text("\n".join([f"{lines[0]},carbon_kg_per_kwh", *rows]) + "\n")
    metrics = play_zero(world_of("day", data=path)).metrics
    instance = world_of("day", data=path).task("train", 0).instance
    net = np.array(instance["load"]) - np.array(instance["pv"])
    assert metrics["peak_import"] == pytest.approx(net.max())
    bought, sold = np.maximum(net, 0.0), np.minimum(np.maximum(-net, 0.0), 3.0)
    assert metrics["ramping"] == pytest.approx(np.abs(np.diff(bought - sold)).sum())
    assert metrics["carbon"] == pytest.approx((bought * np.array(instance["carbon"])).sum())
    kept = np.minimum(instance["pv"], instance["load"]).sum()
    assert metrics["self_consumption"] == pytest.approx(kept / sum(instance["pv"]))
    assert metrics["unserved_energy"] == 0.0
    assert "discomfort" not in metrics


def test_a_cold_house_draws_no_more_than_its_load() -> None:
    world = world_of("household")
    metrics, instance = play_zero(world).metrics, world.task("train", 0).instance
    assert metrics["discomfort"] == pytest.approx(metrics["total_cost"])
    assert metrics["discomfort"] > 1.0
    net = np.array(instance["load"]) - np.array(instance["pv"])
    assert metrics["peak_import"] == pytest.approx(net.max())


def test_the_indicators_of_a_policy_are_means_over_its_tasks() -> None:
    world = world_of("small")
    tasks = world.first_tasks("test", 2)
    ends = [[{"total_money_cost": cost, "peak_import": 2.0}] for cost in (1.0, 3.0)]
    found = indicator_scores(tasks, ends, np.random.default_rng(0))
    cost, peak = found["cost (ct)"], found["peak import (kW)"]
    assert isinstance(cost, Estimate)
    assert isinstance(peak, Estimate)
    assert (cost.value, peak.value) == (200.0, 2.0)
    held = sum(task.answer["reference"] for task in tasks)
    assert found["cost over that of the safe hold"] == pytest.approx(4.0 / held)
    assert "carbon (kg)" not in found
