"""The best constant forecast in closed form, against playing them all."""

from typing import Any

import pytest

from tests.forecasting.questions_file import plain, write_lines
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.scale.level_scale import Earned, best_blind
from tokengym.envs import make_world
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.baselines import best_constant, constants


def totals(world: World, count: int) -> dict[str, float]:
    tasks = world.first_tasks("test", count)
    return {
        name: sum(Earned.of_played(play_all(world, tasks, policy), "forecaster").used_T)
        for name, policy in constants(world).items()
    }


@pytest.mark.parametrize(
    ("level", "options"),
    [
        ("easy", {}),
        ("easy", {"score": "spherical", "label": "expected"}),
        ("hard", {"score": "log", "label": "replay:8"}),
    ],
)
def test_the_constant_in_closed_form_earns_as_much_as_any(
    level: str, options: dict[str, Any]
) -> None:
    world = make_world("forecast", level, **options)
    played = totals(world, 12)
    best = best_constant(world, world.first_tasks("test", 12))
    assert best is not None
    assert played[best] == pytest.approx(max(played.values()), abs=12 * 2**-15)


def test_outcomes_decide_where_no_probability_is_known(tmp_path: Any) -> None:
    write_lines(tmp_path / "q.jsonl", [plain(n, event=f"event {n}") for n in range(40)])
    world = make_world("forecast", data=tmp_path / "q.jsonl")
    tasks = world.first_tasks("test", 40)
    played = totals(world, len(tasks))
    best = best_constant(world, tasks)
    assert best is not None
    assert played[best] == pytest.approx(max(played.values()), abs=1e-3)


def test_several_turns_are_played() -> None:
    world = make_world("forecast", "update")
    tasks = world.first_tasks("test", 3)
    assert best_constant(world, tasks) is None
    played = totals(world, 3)
    best = best_blind(world, tasks, "forecaster", {})
    assert best == max(played, key=played.__getitem__)
