"""Finished runs are set side by side only where they were put to the same test."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.evaluation.written_run import rollouts, scale_of, write_evaluation
from tokengym.agents.cli import app
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.training.config import JobConfig, SftConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError

RL = preset("disruption", "L2", evaluation_tasks=8)


def finished(folder: Path, config: JobConfig, before: float, after: float) -> Path:
    """A run folder as an experiment leaves it."""
    run = RunFolder(folder)
    run.write_config(config)
    tasks = config.evaluation_tasks
    played = {
        name: [
            rollouts(config, ([mean - 0.1, mean + 0.1] * tasks)[:tasks], role)
            for role in config.trained_roles
        ]
        for name, mean in (("before", before), ("after", after))
    }
    scale = scale_of((-0.25,) * tasks, (1.05,) * tasks)
    write_evaluation(run, played, [scale] * len(config.trained_roles))
    run.write_outcome(RunSummary(None))
    return folder


def table(*runs: Path) -> str:
    done = CliRunner().invoke(app, ["compare", *map(str, runs)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def test_one_table_shows_what_each_way_added(tmp_path: Path) -> None:
    rewards = finished(tmp_path / "rl", RL, 0.1, 0.61)
    labels = finished(
        tmp_path / "labels",
        preset_for(SftConfig, "disruption", "L2", evaluation_tasks=8),
        0.1,
        0.52,
    )
    both = finished(tmp_path / "both", replace(RL, start=str(labels)), 0.52, 0.73)
    lines = [line.split("│")[1:-1] for line in table(rewards, labels, both).splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == 6]
    skills = [row[4].partition(" ")[0] for row in cells[:6]]
    returns = 0.1, 0.61, 0.1, 0.52, 0.52, 0.73
    assert skills == [f"{(value + 0.25) / 1.3:.3f}" for value in returns]
    rows = [[*row[:4], row[5]] for row in cells]
    place = "disruption:L2"
    assert ["rl before", "", place, "0.100 ± 0.089", "8"] in rows
    assert ["rl after", "train", place, "0.610 ± 0.089", "8"] in rows
    assert ["labels after", "sft", place, "0.520 ± 0.089", "8"] in rows
    assert ["both after", "train", place, "0.730 ± 0.089", "8"] in rows
    assert [row[0] for row in rows[6:8]] == ["oracle", "best constant"]


def test_runs_are_compared_in_pairs(tmp_path: Path) -> None:
    runs = [finished(tmp_path / name, RL, 0.1, after) for name, after in (("a", 0.2), ("b", 0.5))]
    shown = " ".join(table(*runs).split())
    for pair, difference in (("b after - a after", 0.3), ("b after - b before", 0.4)):
        assert f"{pair} │ disruption:L2 │ {difference:.3f} (all 8 equal)" in shown
    assert "a after - a before" in shown
    assert "b after - a before" not in shown
    assert "b before - a before" not in shown


@pytest.mark.nightly
def test_an_evaluation_is_compared_with_a_run(tmp_path: Path) -> None:
    run = finished(tmp_path / "run", RL, 0.1, 0.3)
    config = EvaluationConfig(
        (f"{RL.world}:{RL.level}",),
        ("noisy",),
        tasks=8,
        options={"prompt": "full"},
        temperature=1.0,
        max_tokens=RL.max_tokens,
    )
    run_evaluation(config, EvaluationFolder(tmp_path / "scripts"))
    shown = table(run, tmp_path / "scripts")
    assert "noisy - run after" in shown
    assert "noisy - run before" not in shown


def test_self_play_has_a_row_for_each_role(tmp_path: Path) -> None:
    settings = replace(RL, self_play=True)
    shown = table(finished(tmp_path / "self", settings, 0.1, 0.3))
    assert "disruption:L2 predictor" in shown
    assert "disruption:L2 challenger" in shown


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(RL, level="L0"), "one level"),
        (replace(RL, evaluation_tasks=9), "one tasks"),
        (replace(RL, temperature=0.3), "one temperature, got 1.0 and 0.3"),
        (replace(RL, max_tokens=7), "one max_tokens"),
        (replace(RL, options={**RL.options, "target": "novelty"}), "one options"),
        (replace(RL, opponents={"challenger": "noisy"}), "one opponents"),
        (preset("forecast", evaluation_tasks=8), "one world"),
    ],
)
def test_runs_put_to_different_tests_are_refused(
    tmp_path: Path, other: JobConfig, message: str
) -> None:
    runs = [finished(tmp_path / "a", RL, 0.1, 0.2), finished(tmp_path / "b", other, 0.1, 0.2)]
    with pytest.raises(OptionError, match=message):
        table(*runs)


@pytest.mark.parametrize(("option", "value"), [("label", "outcome"), ("prompt", "full")])
def test_other_labels_or_wordings_are_the_same_test(
    tmp_path: Path, option: str, value: str
) -> None:
    assert RL.options[option] != value
    other = replace(RL, options={**RL.options, option: value})
    shown = table(finished(tmp_path / "a", RL, 0.1, 0.2), finished(tmp_path / "b", other, 0.1, 0.3))
    assert shown.count("│ train ") == 2


def test_a_folder_without_a_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="holds no evaluation"):
        table(tmp_path)


def test_rollouts_that_occur_twice_are_refused_by_name(tmp_path: Path) -> None:
    rewards, other = (finished(tmp_path / name, RL, 0.1, 0.61) for name in ("one", "two"))
    file = min((other / "rollouts").glob("*.jsonl"))
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join([*lines, *lines[:3]]))
    done = CliRunner().invoke(app, ["compare", str(rewards), str(other)])
    assert isinstance(done.exception, OptionError)
    assert f"3 of {len(lines) + 3} rollouts are repeated" in str(done.exception)
