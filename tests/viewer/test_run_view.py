"""A run as pages see it: compared with what was written into its folder."""

import os
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.viewer.conftest import GROUPS, SIZE, STEPS, evaluate, rollout, write_run
from tokengym.agents.rollouts import train_segment
from tokengym.agents.training.folder.collapse import Collapse
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.folder.run_summary import RunSummary
from tokengym.agents.viewer import open_runs, whole_page
from tokengym.agents.viewer.pages import _chosen, _Group, _kept
from tokengym.agents.viewer.run_view import RunView
from tokengym.agents.viewer.table import table_of
from tokengym.envs.core.errors import DataError


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return write_run(tmp_path / "mine", "forecast")


def test_curves_are_the_logged_figures_and_held_out_means(run: RunFolder) -> None:
    assert [p[0] for p in RunView("mine", run.folder).curves()["points"]["return"]] == [0]
    evaluate(run, "forecast", {"before": 0, "after": 1})
    curves = RunView("mine", run.folder).curves()
    assert curves["steps"] == [*range(STEPS)]
    played = [[*run.rollouts.read(train_segment(step))] for step in range(STEPS)]
    means = [fmean(record.total for record in records) for records in played]
    assert curves["series"]["return"] == pytest.approx(means)
    assert curves["series"]["dead groups"] == [0.0, 0.5, 0.0]
    assert "loss" not in curves["series"]
    expected = {"best x": 0.6, "posterior": 0.9, "random": 0.4}
    assert curves["lines"]["return"] == pytest.approx(expected)
    first, last = curves["points"]["return"]
    assert (first[0], last[0]) == (0, STEPS)
    for (_, mean, low, high), name in ((first, "before"), (last, "after")):
        records = [*run.rollouts.read(f"evaluation_{name}")]
        assert mean == pytest.approx(fmean(record.earned for record in records))
        assert low < mean < high


def test_the_state_is_its_outcome_or_its_age(run: RunFolder) -> None:
    def state() -> str:
        return str(RunView("mine", run.folder).summary()["state"])

    assert state() == "running"
    for file in run.rollouts.folder.iterdir():
        os.utime(file, (0, file.stat().st_mtime - 125))
    assert state() == "stopped"
    run.write_outcome(RunSummary(Collapse(1, "it ties", "stop")))
    assert state() == "collapsed"
    assert RunView("mine", run.folder).summary()["collapse"]["reason"] == "it ties"
    run.write_outcome(RunSummary(None))
    assert state() == "completed"


def test_a_report_is_read_again_when_its_run_ends_anew(run: RunFolder) -> None:
    view = RunView("mine", run.folder)
    assert view.report() is None
    evaluate(run, "forecast", {"before": 0, "after": 1})
    run.write_outcome(RunSummary(None))
    report = view.report()
    assert view.report() is report is not None
    run.write_outcome(RunSummary(Collapse(1, "it ties", "stop")))
    os.utime(run.folder / "outcome.json", (0, 0))
    assert view.report() != report


def test_a_group_is_its_members_and_missing_ones_are_named(run: RunFolder) -> None:
    view = RunView("mine", run.folder)
    rows, records = view.group(train_segment(0), SIZE + 1)
    assert rows == [*range(SIZE, 2 * SIZE)]
    assert {record.origin.group for record in records} == {1}
    with pytest.raises(DataError, match=f"has no row {GROUPS * SIZE}"):
        view.group(train_segment(0), GROUPS * SIZE)
    with pytest.raises(DataError, match="no rollouts called 'train_9'"):
        view.group("train_9", 0)


def test_held_out_rows_have_what_the_oracle_replies_and_earns(run: RunFolder) -> None:
    tables = RunView("mine", run.folder).tables()
    held_out = tables["evaluation_before"]
    assert held_out["best"] == [f"the oracle's {task}" for task in range(6)]
    assert held_out["best_return"] == [0.9] * 6
    assert set(tables[train_segment(0)]["best_return"]) == {None}


def test_a_question_leaves_out_what_most_groups_read() -> None:
    records = [rollout("forecast", "train", 0, group, n) for group in (0, 1, 2) for n in (0, 1)]
    texts = ("Reply in 20 words.\nRain in Rome?", "Reply in 30 words.\nSnow in Oslo?", "Reply")
    records = [
        replace(one, turns=[replace(one.turns[0], read=texts[one.origin.group]), *one.turns[1:]])
        for one in records
    ]
    assert table_of(records)["question"] == ["Rain in Rome?", "", "Snow in Oslo?", "", "Reply", ""]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.data())
def test_a_sample_has_the_extremes_first_and_fits(sizes: list[int], data: st.DataObject) -> None:
    groups = {_Group("train", "", "", n): size for n, size in enumerate(sizes)}
    missing = _Group("train", "", "", -1)
    extremes = data.draw(st.lists(st.sampled_from([*groups, missing]), max_size=4))
    room = data.draw(st.integers(0, sum(sizes) + 5))
    chosen = _chosen(groups, extremes, room)
    assert sum(groups[group] for group in chosen) <= room
    assert (len(chosen) == len(groups)) == (room >= sum(sizes))
    wanted = {*extremes} - {missing}
    if sum(groups[group] for group in wanted) <= room:
        assert chosen >= wanted
    held_out = {group._replace(step=""): size for group, size in groups.items()}
    kept = _kept({True: groups, False: held_out}, extremes, room)
    of_evaluations = sum(held_out[group] for group in kept if not group.step)
    assert of_evaluations <= room // 2
    assert of_evaluations + sum(groups[group] for group in kept if group.step) <= room
    assert (len(kept) == 2 * len(groups)) == (room // 2 >= sum(sizes))


def test_a_page_is_as_large_as_allowed_and_hides_passwords(run: RunFolder) -> None:
    run.write_config(replace(run.config, base_url="https://me:secret@example.org/v1"))
    views = open_runs([run.folder])
    whole = whole_page(views, 10**7)
    assert "https://example.org/v1" in whole
    assert "secret" not in whole
    smaller = len(whole.encode()) - 20_000
    assert smaller - 40_000 < len(whole_page(views, smaller).encode()) <= smaller
