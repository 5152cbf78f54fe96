"""Laws of the study: it covers what it promises, goes on where it stopped, its page is its data."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from benchmarks import group_size_page, group_size_study
from benchmarks.group_size_study import FULL, LESSONS, PILOT, SIZES, Cell
from tests.agents.test_page_blocks import ROOT
from tokengym.agents.analysis.markdown import table_rows
from tokengym.envs.registry import specs

SMALL = replace(PILOT, tasks=3)


def test_the_study_has_every_world_policy_floor_size_and_seed_once() -> None:
    found = group_size_study.cells(FULL)
    assert len(set(found)) == len(found) == len({cell.name for cell in found})
    ties = [(cell.world, cell.what) for cell in found if not cell.size]
    assert sorted(ties) == sorted(
        product((row.short_name for row in specs().values()), ("noisy", "start"))
    )
    lessons = {(cell.world, cell.what, cell.size, cell.seed) for cell in found if cell.size}
    assert lessons == {
        (*lesson, size, seed) for lesson in LESSONS for size in SIZES for seed in FULL.seeds
    }
    assert len(FULL.seeds) >= 2


def test_every_size_has_the_same_rollouts_a_step() -> None:
    for plan in (FULL, PILOT):
        assert all(count % size == 0 for count in plan.rollouts.values() for size in SIZES)


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    cell = Cell("forecast", "noisy")
    assert cell in group_size_study.missing(SMALL, tmp_path)
    group_size_study.measure(cell, SMALL, tmp_path)
    left = group_size_study.missing(SMALL, tmp_path)
    assert cell not in left
    assert len(left) == len(group_size_study.cells(SMALL)) - 1
    kept = (tmp_path / f"{cell.name}.json").read_text()
    done = [cell.name for cell in group_size_study.cells(SMALL) if cell not in left]
    assert done == [cell.name]
    assert group_size_study.run_all(SMALL, tmp_path, [], 1, []) is False
    assert (tmp_path / f"{cell.name}.json").read_text() == kept


def test_an_estimate_goes_by_the_pace_so_far() -> None:
    todo = group_size_study.cells(FULL)
    usual = sum(cell.usual_seconds(FULL) for cell in todo)
    assert group_size_study.minutes(FULL, todo, {}, 2) == pytest.approx(usual / 120)
    first, rest = todo[0], todo[1:]
    slow = {first: 3 * first.usual_seconds(FULL)}
    left = group_size_study.minutes(FULL, rest, slow, 1)
    assert left == pytest.approx(3 * (usual - first.usual_seconds(FULL)) / 60)
    assert usual / 120 < 50


@pytest.mark.parametrize("world", ["forecast", "energy", "disruption"])
def test_a_flat_floor_never_ties_less_than_graded_rewards(world: str) -> None:
    found = group_size_study.measure_ties(Cell(world, "noisy"), SMALL)["floors"]
    for size in map(str, SIZES):
        graded, flat = found["graded"]["sizes"][size], found["flat"]["sizes"][size]
        assert flat["pairs"][0] >= graded["pairs"][0]
        assert flat["useful"][0] <= graded["useful"][0]
        assert flat["mass"] == graded["mass"]
        assert flat["interior"] == graded["interior"]


def test_the_page_and_its_pictures_are_made_of_the_figures_beside_it() -> None:
    study = json.loads((ROOT / "docs" / "study.json").read_text())
    page = (ROOT / "docs" / "study.md").read_text()
    assert page == group_size_page.page(study)
    for name in ("study_ties.png", "study_lessons.png"):
        assert (ROOT / "docs" / name).read_bytes().startswith(b"\x89PNG")


def test_the_tables_say_what_the_figures_say() -> None:
    study = json.loads((ROOT / "docs" / "study.json").read_text())
    for policy in ("noisy", "start"):
        header, *rows = table_rows(group_size_page.ties_table(study, policy))
        assert [row[:2] for row in rows] == [
            [world, floor]
            for world in study["plan"]["steps"]
            for floor in group_size_page.FLOOR_NAMES
        ]
        for row in rows:
            cells = dict(zip(header, row, strict=True))
            told = study["cells"][f"{row[0]}-{policy}"]["floors"][row[1]]["sizes"]["8"]
            assert cells["pairs, G = 8"] == f"{told['pairs'][0]:.3f}"
            assert cells["dead, G = 8"] == f"{1 - told['useful'][0]:.3f}"
