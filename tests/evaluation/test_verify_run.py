"""Laws of verifying a run: what is on record is what happens again, or the difference is named."""

import json
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
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation
from tokengym.agents.training.presets import preset
from tokengym.envs import baselines, make_world, play

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
    made.write_evaluation("before", Evaluation(tuple(record.total for record in before)))
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
    run.write_evaluation("before", Evaluation((0.5, 0.5, 0.5, 0.5)))
    assert verify_run(run).differences == [
        "the evaluation before does not follow from its rollouts"
    ]


def test_a_rollout_of_another_task_is_named(run: RunFolder) -> None:
    change(run, evaluation_segment("before"), index=3)
    assert "it is of another Task" in verify_run(run).differences[0]
