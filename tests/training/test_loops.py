"""Laws of the loop: a job of every kind runs to its report, and goes on where it ended."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import metrics, run_job
from tokengym.agents.training.config import JobConfig, SftConfig, TrainConfig
from tokengym.agents.training.folder.monitor import NAMED
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.ties import tie_statistics

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 2}
FORECAST = preset("forecast", **TINY, steps=2)
ENERGY = preset("energy", **TINY, steps=1)
DEBATE = preset("disruption", "L2", **TINY, steps=1, max_tokens=48)


def run(settings: JobConfig, folder: Path) -> list[dict[str, Any]]:
    run_job(settings, folder)
    return metrics(folder)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "change"),
    [
        (FORECAST, {"filter": "drop", "min_spread": 0.05, "denominator": "live"}),
        (FORECAST, {"estimator": "reinforce_plus_plus", "filter": "resample", "min_spread": 0.05}),
        (FORECAST, {"estimator": "leave_one_out", "mode": "async"}),
        (DEBATE, {"estimator": "leave_one_out"}),
        (ENERGY, {"estimator": "group_standardised", "credit": "exact"}),
    ],
    ids=["drop", "reinforce++ resample", "async", "debate", "exact"],
)
def test_a_job_of_every_kind_runs_to_its_report(
    tmp_path: Path, served: dict[str, Any], settings: TrainConfig, change: dict[str, Any]
) -> None:
    chosen = replace(settings, **served, **change)
    rows = run(chosen, tmp_path)
    assert [row["step"] for row in rows] == list(range(chosen.steps))
    for row in rows:
        assert row["groups/drawn"] >= row["groups/live"]
    assert RunFolder(tmp_path).config == replace(chosen, renderer="qwen3_instruct", system="")
    page = (tmp_path / "report.html").read_text()
    assert "were drawn instead of others" in page
    assert "after training" in page
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"config.json", "metrics.jsonl", "checkpoints.jsonl", "outcome.json"}


@pytest.mark.nightly
def test_a_step_logs_the_named_figures(tmp_path: Path, served: dict[str, Any]) -> None:
    settings = replace(ENERGY, **served, rollout_share=1.0)
    (row,) = run(settings, tmp_path)
    returns = [
        record.total
        for record in RunFolder(tmp_path).rollouts.read()
        if record.origin.kind == "train"
    ]
    assert len(returns) == 4
    assert row["mean_reward"] == pytest.approx(sum(returns) / 4)
    assert row["correct_rate"] == sum(value > 0.5 for value in returns) / 4
    assert row["env/all/floor_mass"] == row["env/all/safety_floor_mass"]
    tokens = row["env/all/total_ob_tokens"] + row["env/all/total_ac_tokens"]
    assert row["tokens_per_second"] == pytest.approx(tokens / row["time/total"])
    ties = tie_statistics([returns[:2], returns[2:]])
    for name in NAMED.keys() - {"mean_reward", "correct_rate"}:
        assert row[name] == row[f"env/all/{name}"] == ties[name]  # type: ignore[literal-required]


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [TrainConfig, SftConfig])
def test_a_job_goes_on_where_it_ended(
    tmp_path: Path, served: dict[str, Any], kind: type[JobConfig]
) -> None:
    settings = preset_for(kind, "forecast", **TINY, **served, steps=2)
    first = run(settings, tmp_path)
    rows = run(replace(settings, steps=3), tmp_path)
    assert rows[:2] == first
    assert [row["step"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"lr_warmup": -1}, "--lr-warmup must be at least 0"),
        ({"mode": "stream"}, "mode"),
        ({"estimator": "grpo"}, "estimator"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        replace(FORECAST, **change)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "group_standardised", "filter": "drop"},
        {"estimator": "leave_one_out", "filter": "resample", "denominator": "live"},
    ],
    ids=["drop", "resample"],
)
def test_self_play_takes_estimators_and_filters(
    tmp_path: Path, served: dict[str, Any], change: dict[str, Any]
) -> None:
    settings = replace(DEBATE, self_play=True, **served, **change)
    (row,) = run(settings, tmp_path)
    assert row["groups/drawn"] >= 4  # two Tasks, both roles of each
    assert row["optim/skipped"] or abs(row["optim/kl_sample_train_v1"]) < 1e-3


def test_exact_credit_is_asked_of_the_world() -> None:
    assert ENERGY.options["credit"] is True
    assert "credit" not in preset("energy", credit="episode").options
