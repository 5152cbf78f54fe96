"""Laws of the choice of loop: which serves what, and that a job of every kind reports."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.training.jobs import metrics, run_job
from tokengym.agents.training.config import TrainConfig
from tokengym.agents.training.folder.monitor import NAMED
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.ties import tie_statistics

pytestmark = pytest.mark.filterwarnings("ignore")

TINY: dict[str, Any] = {"groups_per_batch": 2, "group_size": 2, "evaluation_tasks": 2}
FORECAST = preset("forecast", **TINY, steps=2)
ENERGY = preset("energy", **TINY, steps=1)
DEBATE = preset("disruption", **TINY, steps=1, max_tokens=48)


def run(settings: TrainConfig, folder: Path) -> list[dict[str, Any]]:
    run_job(settings, folder)
    return metrics(folder)


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        (FORECAST, {"filter": "drop", "min_spread": 0.05, "denominator": "live"}),
        (FORECAST, {"estimator": "reinforce_plus_plus", "filter": "resample", "min_spread": 0.05}),
        (FORECAST, {"estimator": "remax", "mode": "async"}),
        (DEBATE, {"estimator": "leave_one_out", "credit": "turn"}),
        (ENERGY, {"estimator": "group_standardised", "credit": "exact"}),
    ],
    ids=["drop", "reinforce++ resample", "remax", "turn", "exact"],
)
def test_a_job_of_every_kind_runs_to_its_report(
    tmp_path: Path, served: dict[str, Any], settings: TrainConfig, change: dict[str, Any]
) -> None:
    chosen = replace(settings, **served, **change)
    assert chosen.own_loop
    rows = run(chosen, tmp_path)
    assert [row["step"] for row in rows] == list(range(chosen.steps))
    for row in rows:
        assert (
            row["groups/drawn"] == row["groups/live"] + row["groups/tie"] + row["groups/resolution"]
        )
    assert RunFolder(tmp_path).config == replace(chosen, renderer="qwen3_instruct")
    page = (tmp_path / "report.html").read_text()
    assert "were drawn in place of such groups" in page
    assert "after training" in page
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"config.json", "metrics.jsonl", "checkpoints.jsonl", "outcome.json"}


@pytest.mark.parametrize("loop", ["own", "cookbook"])
def test_both_loops_log_the_named_figures(
    tmp_path: Path, served: dict[str, Any], loop: Literal["own", "cookbook"]
) -> None:
    settings = replace(ENERGY, **served, loop=loop, rollout_share=1.0)
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


@pytest.mark.parametrize("kind", [{"loop": "own"}, {"command": "sft"}], ids=str)
def test_a_job_in_our_own_loop_goes_on_where_it_ended(
    tmp_path: Path, served: dict[str, Any], kind: dict[str, Any]
) -> None:
    settings = replace(FORECAST, **served, **kind)
    first = run(settings, tmp_path)
    rows = run(replace(settings, steps=3), tmp_path)
    assert rows[:2] == first
    assert [row["step"] for row in rows] == [0, 1, 2]


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "leave_one_out"},
        {"credit": "turn"},
        {"filter": "drop"},
        {"filter": "resample"},
        {"min_spread": 0.01},
        {"denominator": "live"},
        {"lr_schedule": "cosine"},
        {"lr_warmup": 1},
        {"loop": "own"},
    ],
)
def test_our_own_loop_serves_what_the_cookbook_has_no_seam_for(change: dict[str, Any]) -> None:
    assert not FORECAST.own_loop
    assert replace(FORECAST, **change).own_loop


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"loop": "mine"}, "loop"),
        ({"loop": "cookbook", "estimator": "remax"}, "estimator='remax'"),
        ({"loop": "cookbook", "filter": "resample"}, "filter='resample'"),
        ({"loop": "cookbook", "min_spread": 0.1}, "min_spread=0.1"),
        ({"loop": "cookbook", "lr_schedule": "linear"}, "lr_schedule='linear'"),
        ({"loop": "cookbook", "lr_warmup": 3}, "lr_warmup=3"),
        ({"lr_warmup": -1}, "--lr-warmup must be at least 0"),
        ({"loop": "own", "mode": "stream"}, "--mode stream"),
        ({"estimator": "grpo"}, "estimator"),
    ],
)
def test_what_a_loop_cannot_do_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        replace(FORECAST, **change)


@pytest.mark.parametrize(
    ("separate", "change"),
    [
        (False, {"estimator": "group_standardised", "credit": "turn", "filter": "drop"}),
        (True, {"estimator": "remax", "filter": "resample", "denominator": "live"}),
    ],
    ids=["turn", "remax"],
)
def test_self_play_takes_every_estimator_credit_and_filter(
    tmp_path: Path, served: dict[str, Any], separate: bool, change: dict[str, Any]
) -> None:
    settings = replace(DEBATE, self_play=True, separate=separate, **served, **change)
    (row,) = run(settings, tmp_path)
    assert row["groups/drawn"] >= 4  # two Tasks, both roles of each
    for role in ("predictor/", "challenger/") if separate else ("",):
        assert row[f"{role}optim/skipped"] or abs(row[f"{role}optim/kl_sample_train_v1"]) < 1e-3


def test_the_cookbooks_filter_is_its_own_option() -> None:
    dropping = replace(FORECAST, loop="cookbook", filter="drop")
    assert not dropping.own_loop
    assert dropping.beyond_cookbook() == []


def test_exact_credit_is_asked_of_the_world() -> None:
    assert replace(ENERGY, credit="exact").options["credit"] is True
    assert "credit" not in ENERGY.options
