"""Laws of a user's own devices and budget: validated, kept by the Task, scored to the optimum."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.energy.days import days_file
from tests.energy.drawn import world_of
from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines

OWN = {
    "battery_kwh": 13.5,
    "battery_kw": 4.6,
    "import_cap_kw": 17.0,
    "export_cap_kw": 0.0,
    "pv_scale": 1.5,
}


@pytest.mark.parametrize("own_days", [False, True])
def test_every_task_has_the_devices_that_were_asked_for(own_days: bool, tmp_path: Path) -> None:
    data = {"data": days_file(tmp_path / "home.csv")} if own_days else {}
    world = world_of("small", **OWN, **data)
    task = world.task("train", 0)
    found = [task.instance[name] for name in ("capacity", "power", "import_cap", "export_cap")]
    assert found == [13.5, 4.6, 17.0, 0.0]
    if own_days:
        assert max(max(world.task("train", i).instance["pv"]) for i in range(4)) > 4.4
    text = world.start(task).text
    assert "The battery holds at most 13.5 kWh. It takes or gives at most 4.6 kW." in text
    assert "bought from the grid, at most 17 kW" in text
    # The Task keeps them: a world without the options plays it the same.
    for other in (world, world_of("small")):
        assert play(other, task, baselines("energy")["oracle"]).returns["operator"] == 1.0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"battery_kwh": 0}, "battery_kwh must be a number of at least 0.1 and at most 1e+06"),
        ({"battery_kw": "5"}, "battery_kw must be a number .* got '5'"),
        ({"import_cap_kw": float("nan")}, "import_cap_kw must be a number"),
        ({"export_cap_kw": -1}, "export_cap_kw must be a number of at least 0 "),
        ({"pv_scale": True}, "pv_scale must be a number .* got True"),
        ({"cost_budget": -0.1}, "cost_budget must be a number of at least 0, got -0.1"),
        ({"cost_budget": 1.0, "credit": True}, "cost_budget sums them"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(
    options: dict[str, object], reason: str
) -> None:
    with pytest.raises(OptionError, match=reason.replace("+", re.escape("+"))):
        world_of("small", **options)
    with pytest.raises(OptionError, match="battery_kwh is for levels with a battery"):
        world_of("commit", battery_kwh=10)


@pytest.mark.nightly
def test_why_no_instance_is_usable_is_said(tmp_path: Path) -> None:
    path = days_file(tmp_path / "home.csv")
    with pytest.raises(TaskError, match=r"refused 200 times: the load exceeds .* of 0\.5 kW"):
        world_of("small", data=path, import_cap_kw=0.5).task()


def test_free_energy_is_played_only_where_something_can_be_saved(tmp_path: Path) -> None:
    """Only wear costs anything then; holding still costs none where the reserve is kept anyway."""
    path = days_file(tmp_path / "free.csv", price=lambda hour: 0.0, resale=lambda hour: 0.0)
    for task in world_of("small", data=path).first_tasks("train", 6):
        assert task.answer["optimum"] < task.answer["reference"]


@pytest.mark.parametrize(("level", "index"), [("small", 3), ("household", 1)])
def test_a_budget_may_be_spent_to_its_last_token(level: str, index: int) -> None:
    world, strict = world_of(level, cost_budget=1.5), world_of(level)
    task = world.task("train", index)
    assert task.instance["budget"] == 1.5
    assert "budget" not in strict.task("train", 0).instance
    unit = "degrees" if level == "household" else "kWh"
    record = play(world, task, baselines("energy")["oracle"])
    turn = record.turns[-1]
    assert f"Up to 1.5 {unit} may be missed in all" in record.turns[0].text
    assert record.returns["operator"] == 1.0
    assert 0.0 < turn.metrics["total_cost"] <= 1.5 + 1e-6
    assert turn.metrics["safety_floor_mass"] == 0.0
    assert "in all, of 1.5 allowed." in turn.text
    # With all of it used up, one more miss breaks the limit.
    assert play(world, task, lambda *_: "BATTERY -9").returns["operator"] < 0.24


@pytest.mark.parametrize("budget", [0.0, 2.0])
def test_planning_rules_keep_a_budget_and_use_it(budget: float) -> None:
    world, _rng = world_of("small", cost_budget=budget), np.random.default_rng(0)
    for name in ("mpc", "lagrangian"):
        returns = []
        for task in world.first_tasks("train", 2):
            returns.append(play(world, task, baselines("energy")[name]).returns["operator"])
        assert np.mean(returns) > (0.9 if name == "mpc" else 0.2)
