"""Laws of several worlds in one run: shares, Tasks, curves of each, and what is refused."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import metrics, run_job
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.rollouts import evaluation_segment, train_segment
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.batches.mixture import WorldMixture
from tokengym.agents.training.config import SftConfig, TrainConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import mixed_preset
from tokengym.agents.viewer.run_report import run_report
from tokengym.agents.viewer.run_view import RunView
from tokengym.envs.core.errors import OptionError


def mixture(steps: int) -> WorldMixture:
    """Two levels of forecast, three groups of the first to one of the second."""
    builders = [
        TaskDatasetBuilder(
            world="tokengym/Forecast-v1",
            level=level,
            codec="byte",
            group_size=2,
            n_batches=4 * steps,
            groups_per_batch=1,
        )
        for level in ("easy", "hard")
    ]
    sources = [asyncio.run(builder())[0] for builder in builders]
    return WorldMixture(sources, (0.75, 0.25), 4, 0)


def test_batches_repeat_no_task_and_keep_their_shares() -> None:
    batches = [mixture(20).get_batch(step) for step in range(20)]
    groups = [group for batch in batches for group in batch if isinstance(group, TaskGroupBuilder)]
    assert len(groups) == 20 * 4 == len({group.task.fingerprint for group in groups})
    assert [group.number for group in groups] == list(range(len(groups)))
    assert {group.groups_in_batch for group in groups} == {4}
    easy = sum(group.task.level == "easy" for group in groups) / len(groups)
    assert 0.6 < easy < 0.9  # of 80 groups 3/4, as a coin falls
    assert len(mixture(20)) == 20
    assert list(mixture(30).get_batch(7)) == list(batches[7])  # more steps change none before


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_job_trains_on_several_worlds_and_reports_each(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes = {"steps": 2, "groups_per_batch": 4, "group_size": 2, "evaluation_tasks": 2}
    worlds = [("forecast", "hard"), ("warehouse", "pick")]
    config = mixed_preset(TrainConfig, worlds, **sizes, **served)
    _, shown = run_job(config, tmp_path)
    tags = ["forecast-hard", "warehouse-pick"]
    run = RunFolder(tmp_path)
    assert run.config == replace(config, renderer="qwen3_instruct", system="")
    found = read_trained(run)
    assert list(found) == tags
    assert "before (warehouse-pick): " in shown

    rows = metrics(tmp_path)
    returns = {tag: [row.get(f"env/{tag}/reward/total") for row in rows] for tag in tags}
    assert all(any(value is not None for value in values) for values in returns.values())
    trained = [record for step in range(2) for record in run.rollouts.read(train_segment(step))]
    options = {record.world: dict(record.origin.options) for record in trained}
    (other,) = config.others
    assert options == {config.world: dict(config.options), other.world: dict(other.options)}
    played = run.rollouts.read(evaluation_segment("after"))
    assert sorted({f"{one.world}:{one.level}" for one in played}) == [
        "tokengym/Forecast-v1:hard",
        "tokengym/Warehouse-v1:pick",
    ]

    report = run_report(run)
    titles = ["tokengym/Forecast-v1 (hard)", "tokengym/Warehouse-v1 (pick)"]
    assert report.title == ", ".join(titles)
    assert {f"Return on held-out Tasks: {titles[1]}"} <= {table.title for table in report.tables}
    assert all(line in (tmp_path / "report.html").read_text() for line in report.lines[:1])
    curves = RunView("mixed", tmp_path).curves()
    for tag in tags:
        assert curves["series"][f"return in {tag}"] == returns[tag]
        assert "oracle" in curves["lines"][f"return in {tag}"]
        ends = [found[tag].before.result.earned, found[tag].after.result.earned]
        assert [point[1] for point in curves["points"][f"return in {tag}"]] == [
            mean.value for mean in ends
        ]


@pytest.mark.parametrize(
    ("worlds", "changes", "named"),
    [
        (["easy", "easy"], {}, "must differ"),
        (
            ["easy", "hard"],
            {"mix": "1"},
            "each of several worlds, .* got '1' for 2",
        ),
        (["easy", "hard"], {"mix": "1,0"}, "positive number"),
        (["easy", "hard"], {"kind": SftConfig}, "tokengym sft is for one world, got 2"),
        (["easy", "hard"], {"filter": "resample"}, "filter='resample' is for one world"),
    ],
)
def test_what_does_not_fit_is_refused(
    worlds: list[str], changes: dict[str, Any], named: str
) -> None:
    asked = {"kind": TrainConfig, "worlds": [("forecast", level) for level in worlds], **changes}
    with pytest.raises(OptionError, match=named):
        mixed_preset(**asked)
