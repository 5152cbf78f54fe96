"""What trains is paid by the label a world declares for training; all else by what happened."""

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.forecasting.questions_file import plain, write_lines
from tokengym.envs import Paper, Rollouts, Task, baselines, make_world, play, specs
from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.world import World
from tokengym.envs.train_split import standardising_notice, training_options

DECLARED = [(row.id, level) for row in specs().values() if row.training for level in row.levels]
PLAIN = [row.id for row in specs().values() if not row.training]
TASKS = 4


def earned(rollouts: Rollouts, split: str, index: int) -> float:
    """Return what a rollout pays a policy that says the same whatever the label."""
    known = baselines(rollouts.world.spec)
    rollout = rollouts.start_at(split, index)
    return rollout.play(known["random"], index)


def paid(world: World, rollouts: Rollouts, task: Task) -> float:
    """Return what a world itself pays the same policy."""
    known = baselines(world.spec)
    own, others = {rollouts.role: known["random"]}, rollouts.opponents
    played = play(world, world.adopt(task), own, seed=task.index, opponents=others)
    return played.returns[rollouts.role]


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "level"), DECLARED)
def test_rollouts_pay_the_declared_label_on_the_train_split_alone(name: str, level: str) -> None:
    rollouts, exact = Rollouts(name, level), make_world(name, level, **specs()[name].training)
    outcomes = Rollouts(name, level, label="outcome")
    differ = []
    for index in range(TASKS):
        for split in ("train", "validation", "test"):
            rollout = rollouts.start_at(split, index)
            label = {"label": "expected"} if split == "train" else {}
            assert dict(rollout.task.options) == dict(rollout.episode.world.options) == label
            assert rollout.text == outcomes.start_at(split, index).text
            assert rollout.task.fingerprint == rollouts.world.task(split, index).fingerprint
            differ += [split] * (earned(rollouts, split, index) != earned(outcomes, split, index))
        if len(rollouts.world.spec.roles) == 1:
            task = rollouts.world.task("train", index)
            assert earned(rollouts, "train", index) == paid(exact, rollouts, task)
    assert set(differ) <= {"train"}


@pytest.mark.parametrize(
    "given",
    [
        "forecast",
        {"world": "forecast:easy"},
        make_world("forecast"),
        Rollouts("forecast"),
        pickle.loads(pickle.dumps(make_world("forecast"))),
    ],
    ids=["name", "mapping", "world", "rollouts", "pickled world"],
)
def test_unnamed_options_are_declared_however_the_world_is_given(given: Any) -> None:
    rollout = Rollouts.of(given).start_at("train", 1)
    exact = Rollouts("forecast", label="expected").start_at("train", 1)
    for one in (rollout, exact):
        one.say("Probability: 0.42", "stop")
    assert rollout.total == exact.total


@pytest.mark.parametrize("label", ["outcome", "replay:8", "expected"])
def test_a_label_that_is_named_holds(label: str) -> None:
    world = make_world("forecast", label=label)
    for rollouts in (Rollouts("forecast", label=label), Rollouts(world)):
        rollout = rollouts.start_at("train", 2)
        assert getattr(rollout.episode.world, "label") == label  # noqa: B009
        assert earned(rollouts, "train", 2) == paid(world, rollouts, rollout.task)
    assert training_options("forecast", {"label": label}) == {"label": label}


def test_a_task_of_another_label_is_refused_as_ever() -> None:
    with pytest.raises(TaskError, match="scored by the options"):
        Rollouts("forecast").start(make_world("forecast", label="replay:8").task("train", 0))
    task = make_world("forecast", label="expected").task("train", 0)
    assert Rollouts("forecast").start(task).task == task


@pytest.mark.parametrize("name", PLAIN)
def test_worlds_that_declare_nothing_stay_the_same_object(name: str) -> None:
    rollouts = Rollouts(name)
    assert rollouts._training is rollouts.world
    assert rollouts.start_at("train", 0).task == rollouts.world.task("train", 0)


def test_own_data_have_outcomes_alone(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "q.jsonl", [plain(number) for number in range(60)])
    for data in (str(path), [path]):
        rollouts = Rollouts("forecast", data=data)
        rollout = rollouts.start_at("train", 0)
        rollout.say("Probability: 0.9", "stop")
        assert rollout.task.options == {}
        assert rollout.turn.metrics["label"] in (0.0, 1.0)
    assert training_options("forecast", {"data": None}) == {"label": "expected", "data": None}


def test_a_paper_among_synthetic_ones_keeps_its_outcome() -> None:
    paper = Paper(
        openalex_id="W1",
        title="A map of a lake",
        abstract="We chart it.",
        publication_year=2003,
        cited_by_count=120,
        cd_index=0.44,
        novelty_score=None,
        conventionality_score=None,
        disruption_label="disruptive",
        novelty_label=None,
        primary_field="Geology",
    )
    rollouts = Rollouts("disruption")
    made: Any = rollouts.world
    rollout = rollouts.start(made.task_from_paper(paper, split="train"))
    while not rollout.done:
        rollout.say("LABEL disruptive\nP 0.8 0.1 0.1", "stop")
    assert rollout.task.options == {}


@pytest.mark.parametrize("options", [{}, {"label": "expected"}], ids=str)
def test_gymnasium_pays_outcomes_unless_told_otherwise(options: Mapping[str, Any]) -> None:
    env = gymnasium.make("tokengym/Forecast-v1", mode="text", disable_env_checker=True, **options)
    world = make_world("forecast", **options)
    for index in range(TASKS):
        env.reset(options={"split": "train", "index": index})
        _, reward, *_ = env.step("Probability: 0.42")
        world.start(world.task("train", index))
        assert reward == world.reply("Probability: 0.42").rewards["forecaster"]


def test_only_proper_scores_must_not_be_standardised() -> None:
    noticed = {row.short_name for row in specs().values() if standardising_notice(row, "it is so")}
    assert noticed == {row.short_name for row in specs().values() if row.calibration}
    assert {"forecast", "disruption"} <= noticed
    assert not {"energy", "warehouse"} & noticed
