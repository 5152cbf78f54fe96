"""Laws of several worlds in one run: shares, Tasks, curves of each, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.training.jobs import metrics, run_job
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.rollouts import evaluation_segment, train_segment
from tokengym.agents.scale.level_scale import Ends
from tokengym.agents.tinker.dataset import TaskDatasetBuilder
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.batches.mixture import PHASE, MixedSource, WorldMixture
from tokengym.agents.training.config import SftConfig, TrainConfig
from tokengym.agents.training.folder.monitor import StepRow
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import mixed_preset
from tokengym.agents.viewer.run_report import run_report
from tokengym.agents.viewer.run_view import RunView
from tokengym.envs.core.errors import OptionError
from tokengym.envs.registry import make_world

SOURCES = [
    MixedSource(
        f"forecast-{level}",
        TaskDatasetBuilder(world="tokengym/Forecast-v1", level=level, codec="byte", group_size=2),
        Ends(0.2, 0.8),
    )
    for level in ("easy", "hard")
]
TASK = {level: make_world("forecast", level).task("train", 0) for level in ("easy", "hard")}


def mixture(rows: Sequence[StepRow] = (), shares: Sequence[float] = ()) -> WorldMixture:
    # A new object each time: shares must come from the log alone.
    return WorldMixture(SOURCES, lambda: rows, groups_per_batch=4, steps=40, relative_shares=shares)


def logged(skills: Sequence[tuple[float, float]]) -> list[StepRow]:
    """Return the steps of a run whose worlds had these skills."""
    rows: list[StepRow] = []
    for step, pair in enumerate(skills):
        played = [
            (task, 0.2 + 0.6 * skill) for task, skill in zip(TASK.values(), pair, strict=True)
        ]
        found = mixture(rows).measure(step, played)
        rows.append(StepRow(step, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, None, None, 1.0, 1.0, found))
    return rows


def test_groups_go_where_learning_is_and_forget_none() -> None:
    # The first world's skill rises by .1 a step, the second's wavers about its mean.
    skills = [(0.1 * step, 0.5 + 0.01 * (step % 2)) for step in range(3 * PHASE)]
    rows = logged(skills)
    assert mixture(rows).shares(2 * PHASE - 1) == (0.5, 0.5)  # too little is known
    first, second = mixture(rows).shares(3 * PHASE - 1)
    assert first == pytest.approx(0.75)
    assert second == pytest.approx(0.25)


def test_a_loss_of_skill_counts_and_chance_does_not() -> None:
    falling = logged([(-0.1 * step, 0.5) for step in range(3 * PHASE)])
    assert mixture(falling).shares(3 * PHASE - 1)[0] > 0.7
    noise = logged([((-1.0) ** step, (-1.0) ** (step // 2)) for step in range(3 * PHASE)])
    assert mixture(noise).shares(3 * PHASE - 1) == (0.5, 0.5)


def test_a_step_is_the_same_whenever_its_predecessor_is_logged() -> None:
    rows = logged([(0.1 * step, 0.5) for step in range(3 * PHASE)])
    step = 3 * PHASE
    assert mixture(rows[:-1]).shares(step) == mixture(rows).shares(step) != (0.5, 0.5)


def test_batches_repeat_no_task_and_keep_their_shares() -> None:
    batches = [mixture(shares=(3, 1)).get_batch(step) for step in range(4 * PHASE)]
    groups = [group for batch in batches for group in batch if isinstance(group, TaskGroupBuilder)]
    assert len(groups) == 4 * PHASE * 4 == len({group.task.fingerprint for group in groups})
    assert [group.number for group in groups] == list(range(len(groups)))
    assert {group.groups_in_batch for group in groups} == {4}
    easy = sum(group.task.level == "easy" for group in groups) / len(groups)
    assert 0.6 < easy < 0.9  # of 80 groups 3/4, as a coin falls
    again = mixture(shares=(3, 1)).get_batch(7)
    assert list(again) == list(batches[7])


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_a_job_trains_on_several_worlds_and_reports_each(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    sizes = {"steps": 2, "groups_per_batch": 4, "group_size": 2, "evaluation_tasks": 2}
    worlds = [("forecast", "hard"), ("warehouse", "pick")]
    config = mixed_preset(TrainConfig, worlds, mix="even", **sizes, **served)
    _, shown = run_job(config, tmp_path)
    tags = ["forecast-hard", "warehouse-pick"]
    run = RunFolder(tmp_path)
    assert run.config == replace(config, renderer="qwen3_instruct")
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
        assert curves["series"][f"share in {tag}"] == [0.5, 0.5]
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
