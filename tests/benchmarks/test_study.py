"""Laws of the study: flat floors tie more, and the page is its."""

import re

import pytest

from benchmarks.flat_floors import HEADER, main, study_ties
from benchmarks.pages import table_rows
from tests.docs.test_page_blocks import ROOT
from tokengym.envs.registry import make_world, specs

PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
TIES = next(
    table_rows(found)
    for found in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE)
    if HEADER[-1] in found
)


@pytest.mark.parametrize("world", ["forecast", "energy", "disruption"])
def test_a_flat_floor_never_ties_less_than_graded_rewards(world: str) -> None:
    found = study_ties(make_world(world), 3)
    for graded, flat in zip(found["graded"].sizes, found["flat"].sizes, strict=True):
        name = "reward_tie_pair_rate"
        assert flat.rates[name].value >= graded.rates[name].value
        assert flat.useful.value <= graded.useful.value
        for same in ("floor_mass", "interior_tie_pair_rate"):
            assert flat.rates[same] == graded.rates[same]


def test_the_table_shows_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--worlds", "forecast", "--tasks", "3"])
    header, *rows = table_rows(capsys.readouterr().out)
    assert tuple(header) == HEADER
    found = study_ties(make_world("forecast"), 3)
    for row, (floor, study) in zip(rows, found.items(), strict=True):
        cells = dict(zip(header, row, strict=True))
        assert (cells["world"], cells["floor"]) == ("forecast", floor)
        for size in study.sizes:
            assert cells[f"dead, G = {size.size}"] == f"{1 - size.useful.value:.3f}"
        pairs = study.sizes[-1].rates["reward_tie_pair_rate"].value
        assert cells["tied pairs"].startswith(f"{pairs:.3f} ")


def test_the_page_has_every_world_and_floor_once() -> None:
    assert tuple(TIES[0]) == HEADER
    assert sorted(tuple(row[:2]) for row in TIES[1:]) == sorted(
        (spec.short_name, floor) for spec in specs().values() for floor in ("graded", "flat")
    )


def test_the_page_names_the_rule_of_every_flat_floor() -> None:
    for row in specs().values():
        assert row.flat_floor is not None
        assert f"- {row.short_name}: {row.flat_floor.what}\n" in PAGE
