"""Laws of a run's report: it says what happened, with every figure, from the folder alone."""

import json
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tokengym.agents.analysis.episode_report import episode_table
from tokengym.agents.analysis.evaluate import play_all
from tokengym.agents.analysis.forecast_report import forecast_parts
from tokengym.agents.analysis.report import Chart, Report, Table
from tokengym.agents.analysis.run_report import Trained, run_report
from tokengym.agents.settings import read_plain
from tokengym.agents.training.config import JobConfig, SftConfig
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import Evaluation, References, RunSummary
from tokengym.agents.training.presets import preset, preset_for
from tokengym.agents.training.progress import Bar
from tokengym.envs.core.errors import OptionError
from tokengym.envs.energy.data import TimeSeries
from tokengym.envs.registry import baselines, import_object, make_world, spec
from tokengym.rewards.estimates import Estimate, mean_estimate
from tokengym.rewards.skill import Yardstick

BEFORE = Evaluation((0.51, 0.71) * 50, {"malformed": 0.25}, ((0.1, 0.4), (0.9, 0.6)))
AFTER = Evaluation((0.71, 0.91) * 50, {"malformed": 0.0}, ((0.1, 0.2), (0.9, 0.8)))
LINES = {"oracle": Estimate(0.9, 0.89, 0.91, 100), "<b>": Estimate(0.1, 0.1, 0.1, 100)}
YARDSTICK = Yardstick((0.2, 0.4) * 50, (0.9, 1.0) * 50, "best constant")
REFERENCES = References(LINES, YARDSTICK)
REWARDED = {"env/all/reward/total": 0.6, "env/all/total_ob_tokens": 500, "time/total": 0.5}


def reported(
    folder: Path, config: JobConfig, rows: list[dict[str, Any]], outcome: RunSummary
) -> Report:
    """Return the report of a run that was logged so."""
    run = RunFolder(folder)
    run.write_config(config)
    lines = [json.dumps({"step": step, **row}) for step, row in enumerate(rows)]
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    run.write_outcome(outcome)
    return run_report(run)


def text_of(report: Report) -> str:
    """Return all that a report says, as the page gets it."""
    return json.dumps(report.to_dict(), ensure_ascii=False)


def test_every_figure_is_on_the_report(tmp_path: Path) -> None:
    collapse = Collapse(3, "lost <here>", "try it")
    outcome = RunSummary(BEFORE, AFTER, {"forecaster": REFERENCES}, collapse, {"forecaster": None})
    shown = text_of(reported(tmp_path, preset("forecast"), [REWARDED] * 20, outcome))
    for part in ("0.6100", "0.8100", "0.9000", "25.0%", "<b>", "step 3: lost <here>. The last"):
        assert part in shown


def test_a_policy_that_does_not_know_the_form_is_told_apart_first(tmp_path: Path) -> None:
    conditions: dict[str, Any] = {"temperature": 1.0, "max_tokens": 8, "prompt": "full"}
    lost = replace(BEFORE, figures={"malformed": 0.98, "cut_off": 0.1}, conditions=conditions)
    outcome = RunSummary(lost, lost, {"forecaster": REFERENCES}, None, {"forecaster": None})
    first, second, *_ = reported(tmp_path, preset("forecast"), [], outcome).lines
    assert first.startswith("2% of the replies have the form that is asked for")
    assert "reads the full prompts; try --option prompt=terse" in first
    assert "(label expected, full prompts, temperature 1, at most 8 tokens a reply)" in second
    known = replace(lost, figures={"malformed": 0.4})
    assert not replace(outcome, after=known).after.form_warning
    row = {"step": 0, "env/all/malformed": 0.98, **REWARDED}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    shown = StringIO()
    Bar(Console(file=shown, width=200), 1, [], None).show(RunFolder(tmp_path).steps()[0])
    assert "malformed 98%" in shown.getvalue()


def test_the_first_line_says_what_happened_and_whether_it_is_more_than_chance() -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.05, (2, 100))
    before, after = (
        Evaluation(tuple((mean + row).tolist()))
        for mean, row in zip((0.5, 0.58), noise, strict=True)
    )
    ends = Yardstick((0.575,) * 100, (0.9,) * 100, "best constant")
    outcome = RunSummary(before, after, {"forecaster": References({}, ends)}, None, {})
    side = Trained("forecaster", preset("forecast"), "forecaster", outcome)
    gain = mean_estimate(np.subtract(after.returns_by_task, before.returns_by_task).tolist())
    lead = mean_estimate((np.array(after.returns_by_task) - 0.575).tolist())
    assert lead.low < 0.0 < lead.high
    assert side.what_happened == (
        "tokengym-start, trained on rewards in forecast:easy (label expected, terse prompts), went "
        f"from return {before.returns} to {after.returns} on 100 held-out Tasks: a gain of {gain}, "
        "more than chance. Whether it earns more than the best policy that ignores the Task is "
        f"open: {lead} may be chance (about {lead.samples_to_show():,} Tasks would tell)."
    )
    swapped = replace(outcome, before=after, after=before)
    lost = replace(side, outcome=swapped)
    assert f"a loss of {gain}, more than chance. It earns 0.0" in lost.what_happened
    assert "less than the best policy that ignores the Task, more than chance" in lost.what_happened


def test_a_run_without_steps_is_reported_and_one_without_an_end_is_refused(tmp_path: Path) -> None:
    alone = Evaluation(BEFORE.returns_by_task)
    outcome = RunSummary(alone, alone, {"operator": REFERENCES}, None, {"operator": None})
    report = reported(tmp_path, preset("energy"), [], outcome)
    assert report.tables[0].rows[0][0] == "before training"
    (tmp_path / "outcome.json").unlink()
    with pytest.raises(OptionError, match="no finished run"):
        run_report(RunFolder(tmp_path))


def test_every_trained_role_has_its_own_tables(tmp_path: Path) -> None:
    config = preset("disruption", self_play=True)
    challenger = Evaluation((0.0375,) * 100, {"malformed": 0.0625})
    before = replace(BEFORE, stated=(), others={"challenger": challenger})
    after = replace(AFTER, stated=(), others={"challenger": challenger})
    references = {
        "predictor": REFERENCES,
        "challenger": References({"noisy": Estimate(-0.0425, -0.05, -0.04, 7)}, YARDSTICK),
    }
    outcome = RunSummary(before, after, references, None, {})
    shown = text_of(reported(tmp_path, config, [REWARDED] * 5, outcome))
    assert "challenger, held out against model predictor" in shown
    for part in ("0.6100", "0.8100", "0.0375", "-0.0425", "6.2%"):
        assert part in shown


def test_a_supervised_run_says_what_it_fitted_and_nothing_of_ties(tmp_path: Path) -> None:
    rows = [{"train/nll": 2.0 - k, "train/tokens": 9.0, "time/total": 1.0} for k in range(3)]
    outcome = RunSummary(BEFORE, AFTER, {"predictor": REFERENCES}, None, {})
    config = preset_for(SftConfig, "disruption")
    shown = text_of(reported(tmp_path, config, rows, outcome))
    assert "3 steps of 64 demonstrations" in shown
    assert "27 tokens trained on" in shown
    assert "Ties" not in shown


def test_forecasts_of_outcomes_get_a_reliability_diagram_and_the_parts_of_their_loss() -> None:
    rng = np.random.default_rng(0)
    stated = rng.uniform(0.05, 0.95, 400)
    pairs = [(float(rng.random() < p), float(p)) for p in stated]
    first, second, table = forecast_parts(pairs[:200], pairs[200:])
    for diagram, part in ((first, pairs[:200]), (second, pairs[200:])):
        assert isinstance(diagram, Chart)
        assert "Band" in diagram.note
        drawn = {one.name: one for one in diagram.series}
        assert sum(drawn["bins"].sizes) == 200
        assert set(drawn["recalibrated"].x) <= {p for _, p in part}
        band = drawn["chance"]
        assert all(a <= b for a, b in zip(band.low, band.high, strict=True))  # type: ignore[operator]
    assert isinstance(table, Table)
    figures = {str(name): (float(b), float(a)) for name, b, a in table.rows}  # type: ignore[arg-type]
    for column, part in enumerate((pairs[:200], pairs[200:])):
        loss = sum((p - y) ** 2 for y, p in part) / 200
        shown = {name: values[column] for name, values in figures.items()}
        assert shown["mean squared error"] == pytest.approx(loss, abs=5e-5)
        exact = shown["miscalibration (CORP)"] - shown["discrimination (CORP)"]
        assert exact + shown["uncertainty"] == pytest.approx(loss, abs=2e-4)
        base = sum(y for y, _ in part) / 200
        skill = 1 - loss / (base * (1 - base))
        assert shown["Brier skill over the base rate"] == pytest.approx(skill, abs=5e-5)
        assert shown["expected calibration error"] < 0.2


@pytest.mark.parametrize("stated", [(), [(1.0, 0.5)]])
def test_fewer_than_two_forecasts_have_no_calibration(stated: list[tuple[float, float]]) -> None:
    assert forecast_parts(stated, stated) == []


def test_forecasts_of_exact_probabilities_have_a_diagram_without_noise() -> None:
    pairs = [(0.3, 0.4), (0.7, 0.6), (1.0, 0.9)]
    diagram, _, table = forecast_parts(pairs, pairs)
    assert isinstance(diagram, Chart)
    assert isinstance(table, Table)
    assert "exact probabilities" in diagram.note
    assert "chance" not in {one.name for one in diagram.series}
    shown = {str(row[0]): row[1] for row in table.rows}
    variance = float(np.var([0.3, 0.7, 1.0]))
    assert shown["Brier skill over the base rate"] == f"{1 - 0.01 / variance:.4f}"
    assert "its 95 % null quantile" not in shown


@pytest.mark.parametrize(
    ("world", "figures", "shown"),
    [
        (
            "energy",
            {"total_money_cost": 1.4438, "safety_floor_mass": 0.125, "money_cost": 0.5},
            {"Money paid (ct an episode)": "144.4", "Episodes with a violation": "12.5%"},
        ),
        ("warehouse", {"walked": 28.0, "unshipped": 0.5}, {"Steps walked (an episode)": "28"}),
        (
            "disruption",
            {"flip_when_right": 0.25, "flip_when_wrong": 0.75},
            {"Right labels given up": "25.0%", "Wrong labels given up": "75.0%"},
        ),
        ("forecast", {"term/score": 0.5}, {"Term: score (return)": "0.5"}),
    ],
)
def test_figures_have_the_units_and_meanings_of_their_world(
    world: str, figures: dict[str, float], shown: dict[str, str]
) -> None:
    found = Evaluation((0.5,), figures)
    table = episode_table(spec(world), (found, found), ([], []), "")
    rows = {str(row[0][0]): row for row in table.rows}
    for title, value in shown.items():
        assert rows[title][1:] == (value, value)
        assert len(rows[title][0][1]) > 20  # what it means
    assert len(rows) == len(set(figures) - {"money_cost"})  # the last step's says nothing


def test_figures_have_intervals_over_the_episodes_on_record() -> None:
    found = Evaluation((0.5,), {"flip_when_right": 0.25, "brier_gain": 0.5})
    ends = [{"flip_when_right": float(n == 0), "brier_gain": 0.4 + 0.1 * (n % 3)} for n in range(4)]
    left_out: dict[str, float | None] = {"brier_gain": 0.5}  # the first label was wrong
    table = episode_table(spec("disruption"), (found, found), (ends, [*ends, left_out]), "")
    cells = {row[0][0]: row[1:] for row in table.rows}
    assert cells["Right labels given up"][0] == ("25.0%", "1 of 4: 0.6% to 80.6%")
    assert cells["Right labels given up"][1] == cells["Right labels given up"][0]
    revision = cells["Revision (half-Brier)"][0]
    low, high = map(float, revision[1].split(" to "))
    assert low < float(revision[0]) < high


PLAYED: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "energy": [
        ("small", "random", {"credit": True}),
        ("comfort", "random", {"data": TimeSeries(0, 60, outside=(5.0,) * 96, carbon=(0.2,) * 96)}),
    ],
    "warehouse": [
        (level, "random", {})
        for level in ("pick_small", "batch", "stock", "full", "inventory_4", "lease")
    ],
    "disruption": [("L2", "noisy", {}), ("private", "noisy", {})],
    "forecast": [("easy", "random", {}), ("twins", "random", {})],
}
"""Levels, policies and options that between them report all there is."""


@pytest.mark.parametrize("world", PLAYED)
def test_every_metric_that_a_world_declares_is_one_it_reports(world: str) -> None:
    reported: set[str] = set()
    for level, who, options in PLAYED[world]:
        made = make_world(world, level, **options)
        for record in play_all(made, made.first_tasks("test", 12), baselines(world)[who]):
            reported |= set(record.metrics)
    assert set(import_object(spec(world).metrics)) <= reported


def test_an_evaluation_keeps_its_forecasts_in_a_file() -> None:
    found = Evaluation((0.5,), stated=((1.0, 0.25),))
    assert read_plain(Evaluation, asdict(found)) == found
