"""Laws of a run's report: it says what happened, with every figure, from the folder alone."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from tests.evaluation.written_run import rollouts, scale_of, write_evaluation
from tokengym.agents.evaluation.rollout_table import RolloutTable
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.reports.report import Report
from tokengym.agents.training.config import JobConfig, SftConfig
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.training.presets import preset, preset_for
from tokengym.agents.training.progress import Progress
from tokengym.agents.viewer.episode_report import episode_table
from tokengym.agents.viewer.forecast_report import reliability_diagrams
from tokengym.agents.viewer.run_report import Side, run_report
from tokengym.envs.core.errors import OptionError
from tokengym.envs.energy.data import TimeSeries
from tokengym.envs.registry import baselines, import_object, make_world, spec
from tokengym.rewards.estimates import mean_estimate

ENDS = [{"label": 1.0, "probability": 0.5}]
STATED = (((0.1, 0.4), (0.9, 0.6)), ((0.1, 0.2), (0.9, 0.8)))
SCALE = replace(
    scale_of((0.2, 0.4) * 50, (0.9, 1.0) * 50, **{"<b>": (0.1,) * 100}), label="best constant"
)
REWARDED = {"env/all/reward/total": 0.6, "env/all/total_ob_tokens": 500, "time/total": 0.5}


def reported(
    folder: Path,
    config: JobConfig,
    rows: list[dict[str, Any]],
    collapse: Collapse | None = None,
    **reply: Any,
) -> Report:
    """Return the report of a run that was logged so, and earned .61 before and .81 after."""
    run = RunFolder(folder)
    run.write_config(config)
    lines = [json.dumps({"step": step, **row}) for step, row in enumerate(rows)]
    (folder / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    energy = dict.fromkeys(("total_money_cost", "carbon", "violation_depth"), 0.0)
    played: dict[str, list[Any]] = {}
    for name, low, stated in zip(("before", "after"), (0.51, 0.71), STATED, strict=True):
        ends = [{**energy, "label": label, "probability": p} for label, p in stated]
        played[name] = [
            rollouts(config, (low, low + 0.2) * 50, role, ends, **reply)
            for role in config.trained_roles
        ]
    write_evaluation(run, played, [SCALE] * len(config.trained_roles))
    run.write_outcome(RunSummary(collapse))
    return run_report(run)


def text_of(report: Report) -> str:
    """Return all that a report says, as the page gets it."""
    return json.dumps(report.to_dict(), ensure_ascii=False)


def test_every_figure_is_on_the_report(tmp_path: Path) -> None:
    collapse = Collapse(3, "lost <here>", "try it")
    shown = text_of(reported(tmp_path, preset("forecast"), [REWARDED] * 20, collapse))
    for part in ("0.6100", "0.8100", "0.9500", "0.0%", "<b>", "step 3: lost <here>. The last"):
        assert part in shown
    assert "calibration" in shown


@pytest.mark.nightly
def test_a_policy_ignorant_of_the_form_is_found_first(tmp_path: Path) -> None:
    config = replace(preset("forecast"), max_tokens=8, options={"label": "expected"})
    report = reported(tmp_path, config, [], malformed=True)
    assert "0% of the replies have the form that is asked for" in report.lines[1]
    name, trained = report.tables[0].rows[0]
    assert name == "trained on"
    assert "(label expected, full prompts, temperature 1, at most 8 tokens a reply)" in trained
    row = {"step": 0, "env/all/malformed": 0.98, **REWARDED}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + "\n")
    shown = StringIO()
    with Progress(Console(file=shown, width=200)).steps(1, []) as show:
        show(RunFolder(tmp_path).steps()[0])
    assert "malformed 98%" in shown.getvalue()


@pytest.mark.nightly
def test_the_first_sentence_is_short_and_says_whether_chance_explains(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0.0, 0.05, (2, 100))
    before, after = (mean + row for mean, row in zip((0.5, 0.58), noise, strict=True))
    config, scale = preset("forecast"), scale_of((0.575,) * 100, (0.9,) * 100)

    def side(folder: Path, *returns: Any) -> Side:
        run = RunFolder(folder)
        run.write_config(config)
        pairs = zip(("before", "after"), returns, strict=True)
        played = {name: [rollouts(config, row.tolist(), ends=ENDS)] for name, row in pairs}
        write_evaluation(run, played, [scale])
        run.write_outcome(RunSummary(None))
        (found,) = read_trained(run).values()
        return Side(config, "forecaster", found)

    gain, lead = (mean_estimate((after - other).tolist()) for other in (before, 0.575))
    assert lead.low < 0.0 < lead.high
    better = side(tmp_path / "gain", before, after)
    assert better.lead == (
        f"tokengym-start gained {gain} on 100 held-out Tasks ({before.mean():.3f} to "
        f"{after.mean():.3f}); the best input-independent baseline earns 0.575."
    )
    assert len(better.lead.split()) <= 25
    facts = dict(better.facts())
    assert facts["gain on the Tasks played before and after"] == f"{gain}, more than chance"
    assert facts["over the best input-independent baseline"] == (
        f"{lead}: perhaps by chance, about {lead.samples_to_show():,} Tasks would tell"
    )
    assert f"lost {gain} on" in side(tmp_path / "loss", after, before).lead
    same = side(tmp_path / "same", before, before + 1e-3 * (noise[0] - noise[1])).lead
    assert "perhaps by chance, on 100" in same
    assert len(same.split()) <= 25


@pytest.mark.nightly
def test_runs_without_steps_are_reported_without_ends_refused(tmp_path: Path) -> None:
    report = reported(tmp_path, preset("energy"), [])
    assert report.tables[1].rows[0][0] == "before training"
    (tmp_path / "outcome.json").unlink()
    with pytest.raises(OptionError, match="no finished run"):
        run_report(RunFolder(tmp_path))


@pytest.mark.nightly
def test_a_run_without_its_evaluation_is_refused(tmp_path: Path) -> None:
    reported(tmp_path, preset("energy"), [])
    (tmp_path / "evaluation.json").unlink()
    with pytest.raises(OptionError, match="was not evaluated"):
        run_report(RunFolder(tmp_path))


@pytest.mark.nightly
def test_every_trained_role_has_its_own_tables(tmp_path: Path) -> None:
    config = preset("disruption", self_play=True)
    shown = text_of(reported(tmp_path, config, [REWARDED] * 5))
    assert "challenger, held out against model predictor" in shown
    for part in ("0.6100", "0.8100", "on held-out Tasks: challenger"):
        assert part in shown


@pytest.mark.nightly
def test_a_supervised_run_reports_its_fit_and_no_ties(tmp_path: Path) -> None:
    rows = [{"train/nll": 2.0 - k, "train/tokens": 9.0, "time/total": 1.0} for k in range(3)]
    shown = text_of(reported(tmp_path, preset_for(SftConfig, "disruption"), rows))
    assert "3 steps of 64 demonstrations" in shown
    assert "27 tokens trained on" in shown
    assert "Ties" not in shown


def test_outcome_forecasts_get_a_reliability_diagram() -> None:
    rng = np.random.default_rng(0)
    stated = rng.uniform(0.05, 0.95, 400)
    pairs = [(float(rng.random() < p), float(p)) for p in stated]
    first, second = reliability_diagrams({"before": pairs[:200], "after": pairs[200:]})
    for diagram, part in ((first, pairs[:200]), (second, pairs[200:])):
        assert "Band" in diagram.note
        drawn = {one.name: one for one in diagram.series}
        assert sum(drawn["bins"].sizes) == 200
        assert set(drawn["recalibrated"].x) <= {p for _, p in part}
        band = drawn["chance"]
        assert all(a <= b for a, b in zip(band.low, band.high, strict=True))  # type: ignore[operator]


@pytest.mark.parametrize("stated", [(), [(1.0, 0.5)]])
def test_fewer_than_two_forecasts_have_no_calibration(stated: list[tuple[float, float]]) -> None:
    assert reliability_diagrams({"before": stated, "after": stated}) == []


def test_forecasts_of_exact_probabilities_have_a_diagram_without_noise() -> None:
    pairs = [(0.3, 0.4), (0.7, 0.6), (1.0, 0.9)]
    (diagram,) = reliability_diagrams({"after": pairs})
    assert "exact probabilities" in diagram.note
    assert "chance" not in {one.name for one in diagram.series}


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
    shares = {name: value for name, value in figures.items() if not name.startswith("term/")}
    terms = {"score": figures["term/score"]} if "term/score" in figures else {}
    found = RolloutTable.read(rollouts(preset(world), [0.5], ends=[shares], terms=terms), "")
    table = episode_table(spec(world), {"before": found, "after": found}, "")
    rows = {str(row[0][0]): row for row in table.rows}
    for title, value in shown.items():
        cells = [cell if isinstance(cell, str) else cell[0] for cell in rows[title][1:]]
        assert cells == [value, value]
        assert len(rows[title][0][1]) > 20  # what it means
    usual = {"Ended: completed"}
    # The last step's cost says nothing.
    assert len(rows.keys() - usual) == len(set(figures) - {"money_cost"})


def test_figures_have_intervals_over_the_episodes_on_record() -> None:
    ends = [{"flip_when_right": float(n == 0), "brier_gain": 0.4 + 0.1 * (n % 3)} for n in range(4)]
    left_out = {"brier_gain": 0.5}  # the first label was wrong
    config = preset("disruption")
    tables = {
        when: RolloutTable.read(rollouts(config, [0.5] * len(side), ends=side), "")
        for when, side in (("before", ends), ("after", [*ends, left_out]))
    }
    table = episode_table(spec("disruption"), tables, "")
    cells = {row[0][0]: row[1:] for row in table.rows}
    assert cells["Right labels given up"][0] == ("25.0%", "1 of 4: 0.6% to 80.6%")
    assert cells["Right labels given up"][1] == cells["Right labels given up"][0]
    revision = cells["Revision (half-Brier)"][0]
    low, high = map(float, revision[1].split(" to "))
    assert low < float(revision[0]) < high


HOUSEHOLD = TimeSeries(
    0, 60, load=(0.5,) * 96, pv=(0.2,) * 96, outside=(5.0,) * 96, carbon=(0.2,) * 96
)
PLAYED: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "energy": [("small", "random", {"credit": True}), ("household", "random", {"data": HOUSEHOLD})],
    "warehouse": [(level, "random", {}) for level in ("pick_clauses", "stock", "lease")],
    "disruption": [("L2", "noisy", {}), ("private", "noisy", {})],
    "forecast": [("easy", "random", {}), ("twins", "random", {}), ("desk", "read_all", {})],
}
"""Levels, policies and options that between them report all there is."""


@pytest.mark.nightly
@pytest.mark.parametrize("world", PLAYED)
def test_every_metric_that_a_world_declares_is_one_it_reports(world: str) -> None:
    reported: set[str] = set()
    for level, who, options in PLAYED[world]:
        made = make_world(world, level, **options)
        for record in play_all(made, made.first_tasks("test", 12), baselines(world)[who]):
            reported |= set(record.metrics)
    assert set(import_object(spec(world).metrics)) <= reported
