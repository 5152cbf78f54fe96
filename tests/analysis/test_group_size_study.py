"""Laws of the study: flat floors tie more, every size gets the same rollouts, the page is its."""

import re
from pathlib import Path

import pytest

from benchmarks import group_size_study
from benchmarks.group_size_study import (
    BUDGETS,
    POLICIES,
    SIZES,
    TIES_HEADER,
    TRAINING_HEADER,
    study_ties,
)
from tests.analysis.test_page_blocks import ROOT
from tokengym.agents.analysis.markdown import table_rows
from tokengym.envs.registry import make_world, specs

PAGE = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
TIES, TRAINING = (table_rows(found) for found in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE))
FLAT = [row.short_name for row in specs().values() if row.flat_floor and row.flat_floor.option]


def test_every_size_has_the_same_rollouts_a_step() -> None:
    assert set(BUDGETS) == {row.short_name for row in specs().values()}
    for budget in BUDGETS.values():
        assert all(budget.rollouts_per_step % size == 0 for size in SIZES)


@pytest.mark.parametrize("world", ["forecast", "energy", "disruption"])
def test_a_flat_floor_never_ties_less_than_graded_rewards(world: str) -> None:
    found = study_ties(make_world(world), "noisy", 3)
    for graded, flat in zip(found["graded"].sizes, found["flat"].sizes, strict=True):
        name = "reward_tie_pair_rate"
        assert flat.rates[name].value >= graded.rates[name].value
        assert flat.useful.value <= graded.useful.value
        for same in ("floor_mass", "interior_tie_pair_rate"):
            assert flat.rates[same] == graded.rates[same]


def test_the_table_shows_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_size_study, "POLICIES", ("noisy",))
    group_size_study.main(["ties", "--worlds", "forecast", "--tasks", "3"])
    header, *rows = table_rows(capsys.readouterr().out)
    assert tuple(header) == TIES_HEADER
    found = study_ties(make_world("forecast"), "noisy", 3)
    for row, (floor, study) in zip(rows, found.items(), strict=True):
        cells = dict(zip(header, row, strict=True))
        assert [cells[name] for name in ("world", "policy", "floor")] == [
            "forecast",
            "noisy",
            floor,
        ]
        for size in study.sizes:
            assert cells[f"dead, G = {size.size}"] == f"{1 - size.useful.value:.3f}"
        pairs = study.sizes[-1].rates["reward_tie_pair_rate"].value
        assert cells["tied pairs"].startswith(f"{pairs:.3f} ")


def test_a_run_that_never_finishes_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGETS, "forecast", BUDGETS["forecast"]._replace(steps=0))
    with pytest.raises(RuntimeError, match="did not finish"):
        group_size_study.train(tmp_path, "forecast", "graded", 4, 0)


def test_the_page_has_every_world_policy_floor_and_size_once() -> None:
    worlds = list(BUDGETS)
    assert tuple(TIES[0]) == TIES_HEADER
    assert sorted(tuple(row[:3]) for row in TIES[1:]) == sorted(
        (world, policy, floor)
        for world in worlds
        for policy in POLICIES
        for floor in ("graded", "flat")
    )
    assert tuple(TRAINING[0]) == TRAINING_HEADER
    settings = [*((world, "graded") for world in worlds), *((world, "flat") for world in FLAT)]
    assert sorted(tuple(row[:3]) for row in TRAINING[1:]) == sorted(
        (*setting, str(size)) for setting in settings for size in SIZES
    )


def test_the_page_names_the_rule_of_every_flat_floor() -> None:
    for row in specs().values():
        assert row.flat_floor is not None
        assert f"- {row.short_name}: {row.flat_floor.what}\n" in PAGE
