"""Laws of verifying a run: what is on record is what happens again, or the difference is named."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tinker")
pytest.importorskip("typer")

from typer.testing import CliRunner

from tests.evaluation.written_run import write_evaluation
from tokengym.agents.cli import app
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.verify import verify_run
from tokengym.agents.rollouts import (
    RolloutOrigin,
    RolloutRecord,
    evaluation_segment,
    record_play,
    train_segment,
)
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
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
    made.write_config(preset(WORLD, spec(WORLD).levels[0], options=OPTIONS))
    before = [rollout("evaluation", "test", group) for group in range(4)]
    made.rollouts.append(train_segment(0), [rollout("train", "train", group) for group in range(2)])
    write_evaluation(made, {"before": [before]})
    return made


def change(run: RunFolder, segment: str, **changes: Any) -> None:
    path = run.rollouts.path(segment)
    first, *others = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *others]) + "\n")


@pytest.mark.nightly
def test_a_run_that_was_left_alone_agrees_to_the_bit(run: RunFolder) -> None:
    assert verify_run(run) == (6, [])
    shown = CliRunner().invoke(app, ["evaluate", "--verify", str(run.folder)])
    assert (shown.exit_code, shown.output) == (0, "6 rollouts replayed: all agree\n")


@pytest.mark.nightly
def test_a_rollout_that_was_changed_is_named(run: RunFolder) -> None:
    change(run, train_segment(0), **{"return": 0.125})
    (found,) = verify_run(run).differences
    assert found.startswith("train_000000 predictor, Task 0, 0: total is ")
    shown = CliRunner().invoke(app, ["evaluate", "--verify", str(run.folder)])
    assert shown.exit_code == 1
    assert "1 differences in 6 rollouts" in shown.output


@pytest.mark.parametrize("name", ["mean_return", "malformed"])
def test_evaluations_that_contradict_their_rollouts_are_named(run: RunFolder, name: str) -> None:
    file = EvaluationFolder(run.folder).file
    data = json.loads(file.read_text())
    data["results"]["policies"][0][name]["value"] = 0.75
    file.write_text(json.dumps(data))
    (found,) = verify_run(run).differences
    assert found.startswith(f"results.policies.0.{name}.value is ")
    assert found.endswith(", recorded 0.75")


def test_a_rollout_of_another_task_is_named(run: RunFolder) -> None:
    change(run, evaluation_segment("before"), index=3)
    assert "it is of another Task" in verify_run(run).differences[0]
