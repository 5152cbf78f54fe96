"""Laws of a user's own devices: validated, kept by the Task, scored to the optimum."""

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


def test_planning_rules_earn_what_planning_is_worth() -> None:
    world = world_of("small")
    for name in ("mpc", "lagrangian"):
        returns = []
        for task in world.first_tasks("train", 2):
            returns.append(play(world, task, baselines("energy")[name]).returns["operator"])
        assert np.mean(returns) > (0.9 if name == "mpc" else 0.2)
