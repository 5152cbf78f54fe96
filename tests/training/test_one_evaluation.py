"""What a run reports of its policy before and after is what `tokengym evaluate` says of both."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import run_job
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.plan import AFTER
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.evaluation.verify import verify_run
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
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
        ("forecast:easy",),
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
    again = EvaluationFolder(tmp_path / "evaluation").saved()
    assert [scale.ends for scale in again.scales] == [scale.ends for scale in kept.scales]
    assert [
        replace(pair, first=names[pair.first], second=names[pair.second]) for pair in found.pairs
    ] == list(kept.results.pairs)
    files = {path.name for path in run.folder.iterdir()}
    played = {path.name for path in (tmp_path / "evaluation").iterdir()}
    assert played - files == {"evaluation.lock"}

    (trained,) = read_trained(run).values()
    gains = zip(trained.before.earned_T, trained.after.earned_T, strict=True)
    assert found.pairs[0].difference == mean_estimate([before - after for before, after in gains])


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("before", [0, 3])
def test_gains_count_the_tasks_played_both_times(
    before: int, tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes = {"steps": 1, "groups_per_batch": 2, "group_size": 2, "evaluation_tasks": TASKS}
    config = preset("forecast", "easy", **sizes, evaluate_before=before, **served)
    _, shown = run_job(config, tmp_path)
    (trained,) = read_trained(RunFolder(tmp_path)).values()
    assert len(trained.after.paid_T) == TASKS
    assert verify_run(RunFolder(tmp_path)).differences == []
    page = (tmp_path / "report.html").read_text()
    if before:
        assert trained.before.result.tasks == len(trained.before.paid_T) == before
        gain = trained.after.earned_T[:before], trained.before.earned_T
        used = trained.scale.used
        blind, oracle = used.blind_T[:before], used.oracle_T[:before]
        assert trained.skill().gain.value == pytest.approx(
            (sum(gain[0]) - sum(gain[1])) / (sum(oracle) - sum(blind))
        )
        assert f"on {before} held-out Tasks" in page
    else:
        assert list(trained.policies) == [AFTER]
        assert "before training" not in shown
        earned = trained.after.result.earned
        assert f"earns {earned.value:.3f} on {TASKS} held-out Tasks" in page


def test_tasks_before_training_are_some_of_the_held_out_ones() -> None:
    assert preset("forecast", evaluation_tasks=8).tasks_before == 8
    assert preset("forecast", evaluation_tasks=256).tasks_before == 64
    for evaluate_before in (1, 9):
        with pytest.raises(OptionError, match=r"0, or from 2 to --evaluation-tasks 8, got \d$"):
            preset("forecast", evaluation_tasks=8, evaluate_before=evaluate_before)
