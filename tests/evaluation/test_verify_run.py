"""Laws of verifying a run: what is on record is what happens again, or the difference is named."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tinker")
pytest.importorskip("typer")

from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.evaluation.verify import verify_run
from tokengym.agents.rollouts import (
    RolloutOrigin,
    RolloutRecord,
    evaluation_segment,
    record_play,
    train_segment,
)
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation
from tokengym.agents.training.presets import mixed_preset, preset
from tokengym.envs import baselines, make_world, play
from tokengym.envs.registry import spec

WORLD, OPTIONS = "disruption", {"prompt": "terse"}


def rollout(kind: str, split: str, group: int) -> RolloutRecord:
    world, known = make_world(WORLD, **OPTIONS), baselines(WORLD)
    policies = {"predictor": known["noisy"], "challenger": known["scripted"]}
    played = play(world, world.task(split, group), policies, seed=group)
    return record_play(RolloutOrigin(kind, group=group, options=OPTIONS), played, "predictor")


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.write_config(preset(WORLD))
    before = [rollout("evaluation", "test", group) for group in range(4)]
    made.rollouts.append(evaluation_segment("before"), before)
    made.rollouts.append(train_segment(0), [rollout("train", "train", group) for group in range(2)])
    made.write_evaluation("before", Evaluation.of_rollouts(before, spec(WORLD)))
    return made


def change(run: RunFolder, segment: str, **changes: Any) -> None:
    path = run.rollouts.path(segment)
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *others]) + "\n")


def test_a_run_that_was_left_alone_agrees_to_the_bit(run: RunFolder) -> None:
    assert verify_run(run) == (6, [])
    shown = CliRunner().invoke(app, ["evaluate", "--verify", str(run.folder)])
    assert (shown.exit_code, shown.output) == (
        0,
        "6 rollouts replayed: all agree exactly\n",
    )


def test_a_rollout_that_was_changed_is_named(run: RunFolder) -> None:
    change(run, train_segment(0), **{"return": 0.125})
    (found,) = verify_run(run).differences
    assert found.startswith("train_000000 predictor, Task 0, 0: total is ")
    shown = CliRunner().invoke(app, ["evaluate", "--verify", str(run.folder)])
    assert shown.exit_code == 1
    assert "1 differences in 6 rollouts" in shown.output


def test_an_evaluation_that_does_not_follow_from_its_rollouts_is_named(run: RunFolder) -> None:
    stated = run.evaluation("before")
    assert stated is not None
    run.write_evaluation(
        "before", replace(stated, returns_by_task=(0.5, *stated.returns_by_task[1:]))
    )
    (found,) = verify_run(run).differences
    assert found.startswith("before predictor: returns_by_task.0 is ")
    assert found.endswith(", recorded 0.5")


def test_every_figure_of_an_evaluation_follows_from_its_rollouts(run: RunFolder) -> None:
    stated = run.evaluation("before")
    assert stated is not None
    edited = {**stated.figures, "malformed": 0.75}
    run.write_evaluation("before", replace(stated, figures=edited, low=stated))
    first, *rest = verify_run(run).differences
    assert (
        first
        == f"before predictor: figures.malformed is {stated.figures['malformed']}, recorded 0.75"
    )
    # Nothing was played at a low temperature.
    assert rest[0].startswith("before predictor: low.returns_by_task is [], recorded [")


def test_levels_of_one_role_that_were_played_at_once_are_verified_each(tmp_path: Path) -> None:
    config = mixed_preset(TrainConfig, [("forecast", "easy"), ("forecast", "hard")], mix="even")
    run, known = RunFolder(tmp_path), baselines("forecast")["noisy"]
    run.write_config(config)
    levels: dict[str, list[RolloutRecord]] = {}
    for group in range(2):
        for level in ("hard", "easy"):
            world = make_world("forecast", level)
            played = play(world, world.task("test", group), known, seed=group)
            origin = RolloutOrigin("evaluation", group=group)
            levels.setdefault(level, []).append(record_play(origin, played, "forecaster"))
            run.rollouts.append(evaluation_segment("before"), levels[level][-1:])
    run.rollouts.seal(evaluation_segment("before"))
    hard, easy = (Evaluation.of_rollouts(rows, spec("forecast")) for rows in levels.values())
    run.write_evaluation("before", replace(easy, others={"forecast-hard": hard}))
    assert verify_run(run) == (4, [])
    run.write_evaluation("before", replace(easy, others={"forecast-hard": easy}))
    assert all(found.startswith("before forecast-hard: ") for found in verify_run(run).differences)
    assert verify_run(run).differences


def test_a_rollout_of_another_task_is_named(run: RunFolder) -> None:
    change(run, evaluation_segment("before"), index=3)
    assert "it is of another Task" in verify_run(run).differences[0]
