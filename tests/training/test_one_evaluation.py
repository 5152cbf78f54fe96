"""What a run reports of its policy before and after is what `tokengym evaluate` says of both."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import run_job
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.rewards.estimates import mean_estimate

TASKS = 8


@pytest.mark.filterwarnings("ignore")
def test_a_run_reports_what_an_evaluation_of_both_policies_finds(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes: dict[str, Any] = {"steps": 1, "groups_per_batch": 2, "group_size": 4}
    sizes |= {"evaluation_tasks": TASKS, "low_tasks": 0, "learning_rate": 1e-2}
    outcome, _ = run_job(preset("forecast", "easy", **sizes, **served), tmp_path / "run")
    run = RunFolder(tmp_path / "run")
    asked = EvaluationConfig(
        (WorldLevel.parse("forecast:easy"),),
        (served["model"], str(run.folder)),
        tasks=TASKS,
        max_tokens=run.config.max_tokens,
        base_url=served["base_url"],
        seed=run.config.seed,
    )
    found = run_evaluation(asked, EvaluationFolder(tmp_path / "evaluation"))

    skill, references = outcome.skill("forecaster"), outcome.references["forecaster"]
    both = outcome.before, outcome.after
    assert [row.mean_return for row in found.policies] == [each.returns for each in both]
    assert [row.expected for row in found.policies] == [each.earned for each in both]
    assert [row.skill for row in found.policies] == [skill.before, skill.after]
    (world,), (pair,) = found.worlds, found.pairs
    assert world.blind_name == references.yardstick.blind_name
    assert world.blind == references.lines[world.blind_name]
    assert world.oracle == references.lines["oracle"]
    gains = zip(outcome.before.earned_by_task, outcome.after.earned_by_task, strict=True)
    assert pair.difference == mean_estimate([before - after for before, after in gains])
