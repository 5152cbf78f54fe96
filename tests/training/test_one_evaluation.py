"""What a run reports of its policy before and after is what `tokengym evaluate` says of both."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import run_job
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.rewards.estimates import mean_estimate

TASKS = 8


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_run_reports_what_an_evaluation_of_both_policies_finds(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes: dict[str, Any] = {"steps": 1, "groups_per_batch": 2, "group_size": 4}
    sizes |= {"evaluation_tasks": TASKS, "learning_rate": 1e-2}
    run = RunFolder(tmp_path / "run")
    run_job(preset("forecast", "easy", **sizes, **served), run.folder)
    asked = EvaluationConfig(
        (WorldLevel.parse("forecast:easy"),),
        (served["model"], str(run.folder)),
        tasks=TASKS,
        max_tokens=run.config.max_tokens,
        base_url=served["base_url"],
        seed=run.config.seed,
    )
    found = run_evaluation(asked, EvaluationFolder(tmp_path / "evaluation"))

    kept = EvaluationFolder(run.folder).saved()
    assert kept.results is not None
    names = dict(zip(asked.policies, ("before", "after"), strict=True))
    assert [replace(row, policy=names[row.policy]) for row in found.policies] == list(
        kept.results.policies
    )
    assert list(found.worlds) == list(kept.results.worlds)
    assert [
        replace(pair, first=names[pair.first], second=names[pair.second]) for pair in found.pairs
    ] == list(kept.results.pairs)
    files = {path.name for path in run.folder.iterdir()}
    assert files >= {path.name for path in (tmp_path / "evaluation").iterdir()}

    (trained,) = read_trained(run).values()
    assert trained.scale.lines["oracle"] == found.worlds[0].oracle
    gains = zip(trained.before.earned_T, trained.after.earned_T, strict=True)
    assert found.pairs[0].difference == mean_estimate([before - after for before, after in gains])
