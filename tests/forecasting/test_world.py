"""Laws of ForecastWorld: what a forecast earns, under which label, and who earns most."""

from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.errors import EpisodeStateError, OptionError, TaskError
from tokengym.envs.core.label_noise import OUTCOMES
from tokengym.envs.core.play import play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.envs.registry import baselines, make_world
from tokengym.rewards.scoring import SCORES

GRID = 2.0**-16
levels = pytest.mark.parametrize("level", LEVELS)
without_archive = pytest.mark.parametrize("level", [k for k, v in LEVELS.items() if not v.desk])


def forecast_world(level: str = "easy", **options: object) -> ForecastWorld:
    world = make_world("tokengym/Forecast-v1", level, **options)
    assert isinstance(world, ForecastWorld)
    return world


def earned(world: World, task: Task, policy: str) -> float:
    return play(world, task, baselines("forecast")[policy]).returns["forecaster"]


@given(p=st.floats(0.0, 1.0), index=st.integers(0, 50))
def test_a_forecast_earns_the_form_and_its_score(p: float, index: int) -> None:
    world = forecast_world()
    task = world.task("train", index)
    world.start(task)
    turn = world.reply(f"Probability: {p:.5f}")
    outcome = int(task.answer["outcomes"][0])
    score = 1.0 - (round(p, 5) - outcome) ** 2
    assert turn.terms["forecaster"]["score"] == pytest.approx(0.95 * score, abs=GRID)
    assert turn.terms["forecaster"]["form"] == pytest.approx(0.05, abs=GRID)
    assert turn.rewards["forecaster"] == sum(turn.terms["forecaster"].values())
    assert turn.stop_reason is StopReason.COMPLETED


@levels
@pytest.mark.parametrize("reply", ["", "Probability: 2", "I do not know"])
def test_a_malformed_reply_earns_less_than_the_worst_forecast(level: str, reply: str) -> None:
    world = forecast_world(level)
    turn = world.start(world.task())
    while not turn.done:
        turn = world.reply(reply)
        assert turn.text.startswith("Malformed reply")
    expected = StopReason.TURN_LIMIT if world.tools else StopReason.MALFORMED
    assert turn.stop_reason is expected
    assert world.returns["forecaster"] < 0.05
    assert (world.returns["forecaster"] > 0.0) == bool(reply)


@without_archive
@pytest.mark.parametrize("score", SCORES)
def test_the_oracle_reaches_the_optimum_without_luck(level: str, score: str) -> None:
    world = forecast_world(level, score=score, label="expected")
    for index in range(40):
        task = world.task("test", index)
        optimum = world.optimum(task)["forecaster"]
        assert optimum.exact
        # Two terms a turn are rounded to the grid, each by half a step at most.
        slack = (world.turn_limit + 1) * GRID
        assert earned(world, task, "oracle") == pytest.approx(optimum.value, abs=slack)
        for policy in ("half", "base_rate", "random", "empirical", "noisy"):
            assert earned(world, task, policy) <= optimum.value + 3 * GRID


def test_a_replay_label_averages_the_first_outcomes() -> None:
    for count in (1, 4, OUTCOMES):
        world = forecast_world(label=f"replay:{count}")
        task = world.task("train", 3)
        world.start(task)
        turn = world.reply("Probability: 0.25")
        ones = [int(outcome) for outcome in task.answer["outcomes"][:count]]
        score = fmean(1.0 - (0.25 - one) ** 2 for one in ones)
        assert turn.metrics["score"] == pytest.approx(score)


@pytest.mark.parametrize("label", ["outcome", "expected", "replay:8"])
def test_the_label_changes_the_reward_and_not_the_problem(label: str) -> None:
    world, plain = forecast_world("hard", label=label), forecast_world("hard")
    task = plain.task("train", 7)
    assert world.task("train", 7) == world.adopt(task)
    assert world.adopt(task).options == ({} if label == "outcome" else {"label": label})
    assert world.adopt(task).fingerprint == task.fingerprint


def test_a_task_is_scored_by_its_own_options() -> None:
    task = forecast_world(label="expected").task()
    with pytest.raises(TaskError, match=r'by the options \{"label":"expected"\}, this'):
        forecast_world().start(task)
    with pytest.raises(TaskError, match="adopt"):
        forecast_world(score="log").optimum(task)
    assert forecast_world(label="expected", prompt="terse").start(task)


def test_more_replays_bring_the_reward_nearer_the_noise_free_one() -> None:
    expected = forecast_world(label="expected")
    tasks = [expected.task("train", index) for index in range(200)]
    errors = []
    for count in (1, 4, 16, OUTCOMES):
        drawn = forecast_world(label=f"replay:{count}")
        gaps = (
            earned(drawn, drawn.adopt(t), "empirical") - earned(expected, t, "empirical")
            for t in tasks
        )
        errors.append(fmean(map(abs, gaps)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 4


@given(first=st.floats(0.0, 1.0), second=st.floats(0.0, 1.0))
def test_both_reports_of_an_update_pay_half(first: float, second: float) -> None:
    world = forecast_world("update", family="poisson")
    task = world.task("train", 1)
    world.start(task)
    outcome = int(task.answer["outcomes"][0])
    for p in (first, second):
        turn = world.reply(f"Probability: {p:.4f}")
        score = 1.0 - (round(p, 4) - outcome) ** 2
        assert turn.rewards["forecaster"] == pytest.approx(0.025 + 0.475 * score, abs=2 * GRID)
    assert turn.done


def test_after_a_malformed_first_report_the_second_still_pays() -> None:
    world = forecast_world("update")
    world.start(world.task())
    turn = world.reply("no idea")
    assert turn.text.startswith("Malformed reply")
    assert turn.text.count("\n") == 1
    assert not turn.done
    form = baselines("forecast")["half"](world, turn, np.random.default_rng(0))
    assert world.reply(form).rewards["forecaster"] > 0.0


def test_the_log_score_says_what_it_clips() -> None:
    world = forecast_world(score="log", label="expected")
    assert "0.01" in world.start(world.task()).text.partition("\n\n")[0]


@pytest.mark.parametrize(
    "options",
    [
        {"score": "crps"},
        {"label": "replay"},
        {"label": "replay:0"},
        {"label": f"replay:{OUTCOMES + 1}"},
        {"label": "replay:1.5"},
        {"label": "replay:\u0664"},
        {"family": "walk"},
        {"family": []},
        {"family": ["poisson", "poisson"]},
        {"colour": "red"},
    ],
)
def test_an_option_it_does_not_take_is_named(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options))):
        forecast_world(**options)


def test_families_narrow_what_is_asked() -> None:
    world = forecast_world("hard", family=["walk", "polls"])
    asked = {world.task("train", index).instance["family"] for index in range(40)}
    assert asked == {"walk", "polls"}


@pytest.mark.parametrize(
    "damage",
    [
        {"instance": {}},
        {"instance": {"family": "chess", "shown": {}, "negated": False, "asides": [], "turns": 1}},
        {"answer": {}},
        {"answer": {"outcomes": "7"}},
        {"answer": {"outcomes": ""}},
        {"answer": {"outcomes": 3}},
    ],
)
def test_a_damaged_task_is_refused(damage: dict[str, object]) -> None:
    world = forecast_world()
    task = world.task()
    parts = {"instance": task.instance, "answer": task.answer, **damage}
    with pytest.raises(TaskError):
        world.start(
            Task.create(world=task.world, level="easy", split="train", index=0, **parts)  # type: ignore[arg-type]
        )


def test_there_is_no_question_before_the_start() -> None:
    with pytest.raises(EpisodeStateError):
        _ = forecast_world().question
