"""Finished runs are set side by side only where they were put to the same test."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tokengym.agents.cli import app
from tokengym.agents.cli.compare import training_method
from tokengym.agents.training.config import JobConfig, SftConfig
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.skill import Yardstick

RL = preset("disruption", evaluation_tasks=8)


def finished(folder: Path, config: JobConfig, before: float, after: float) -> Path:
    """A run folder as an experiment leaves it."""
    roles = ("predictor", "challenger") if len(config.trained_roles) > 1 else ("predictor",)

    def evaluation(mean: float) -> Evaluation:
        alone = Evaluation((mean - 0.1, mean + 0.1) * 4)
        return replace(alone, others=dict.fromkeys(roles[1:], alone))

    lines = {"oracle": Estimate(1.05, 1.0, 1.1, 8), "null": Estimate(-0.25, -0.3, -0.2, 8)}
    yardstick = Yardstick((-0.25,) * 8, (1.05,) * 8, "null")
    references = dict.fromkeys(roles, References(lines, yardstick))
    outcome = RunSummary(
        evaluation(before), evaluation(after), references, None, dict.fromkeys(roles)
    )
    run = RunFolder(folder)
    run.write_config(config)
    run.write_outcome(outcome)
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
        tmp_path / "labels", preset_for(SftConfig, "disruption", evaluation_tasks=8), 0.1, 0.52
    )
    both = finished(tmp_path / "both", replace(RL, start=str(labels)), 0.52, 0.73)
    lines = [line.split("│")[1:-1] for line in table(rewards, labels, both).splitlines()]
    cells = [[cell.strip() for cell in line] for line in lines if len(line) == 7]
    skills = [row[5].partition(" ")[0] for row in cells[:3]]
    assert skills == [f"{(value + 0.25) / 1.3:.3f}" for value in (0.61, 0.52, 0.73)]
    rows = [[*row[:5], row[6]] for row in cells]
    assert ["rl", "rewards", "predictor", "0.100 ± 0.089", "0.610 ± 0.089", "8"] in rows
    assert ["labels", "demonstrations", "predictor", "0.100 ± 0.089", "0.520 ± 0.089", "8"] in rows
    assert rows[2][1:] == [
        "rewards, from labels",
        "predictor",
        "0.520 ± 0.089",
        "0.730 ± 0.089",
        "8",
    ]
    assert [row[0] for row in rows[3:]] == ["oracle", "null"]


def test_runs_are_compared_in_pairs(tmp_path: Path) -> None:
    runs = [finished(tmp_path / name, RL, 0.1, after) for name, after in (("a", 0.2), ("b", 0.5))]
    shown = table(*runs)
    assert "b - a" in shown
    assert "0.300 (all 8 equal)" in " ".join(shown.split())


def test_self_play_has_a_row_for_each_role(tmp_path: Path) -> None:
    settings = replace(RL, self_play=True)
    shown = table(finished(tmp_path / "self", settings, 0.1, 0.3))
    assert shown.count("self-play") == 2
    assert "challenger" in shown
    assert training_method(replace(settings, separate=True)) == "self-play, own policies"


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(RL, level="L0"), "one level"),
        (replace(RL, evaluation_tasks=9), "one evaluation_tasks"),
        (replace(RL, temperature=0.3), "one temperature, got 1.0 and 0.3"),
        (replace(RL, max_tokens=7), "one max_tokens"),
        (replace(RL, model="other"), "one model"),
        (replace(RL, options={**RL.options, "target": "novelty"}), "one options"),
        (replace(RL, opponents={"challenger": "noisy"}), "opponents of predictor"),
        (preset("forecast", evaluation_tasks=8), "one world"),
    ],
)
def test_runs_put_to_different_tests_are_refused(
    tmp_path: Path, other: JobConfig, message: str
) -> None:
    runs = [finished(tmp_path / "a", RL, 0.1, 0.2), finished(tmp_path / "b", other, 0.1, 0.2)]
    with pytest.raises(OptionError, match=message):
        table(*runs)


def test_runs_trained_on_other_labels_were_put_to_the_same_test(tmp_path: Path) -> None:
    assert RL.options["label"] == "expected"
    other = replace(RL, options={**RL.options, "label": "outcome"})
    shown = table(finished(tmp_path / "a", RL, 0.1, 0.2), finished(tmp_path / "b", other, 0.1, 0.3))
    assert shown.count("rewards") == 2


def test_a_task_in_another_wording_is_the_same_task(tmp_path: Path) -> None:
    assert RL.options["prompt"] == "terse"
    other = replace(RL, options={**RL.options, "prompt": "full"})
    shown = table(finished(tmp_path / "a", RL, 0.1, 0.2), finished(tmp_path / "b", other, 0.1, 0.3))
    assert shown.count("rewards") == 2


def test_a_folder_without_a_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no finished run"):
        table(tmp_path)
