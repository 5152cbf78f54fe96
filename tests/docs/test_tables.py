"""The table of levels holds what its command prints: scripts are played again at first levels."""

import re

import pytest

from benchmarks.level_tables import BLOCK
from benchmarks.pages import read_block, table_rows
from tests.docs.pages import ROOT
from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.scale.level_scale import shipped_rows
from tokengym.envs.core.play import play
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.registry import baselines, make_world, scripted_opponent, specs

PAGE = ROOT / "docs" / "worlds.md"
ROWS = table_rows(read_block(PAGE, f"{BLOCK}, by level"))[1:]
(TASKS,) = {int(n) for n in re.findall(r"check --all --tasks (\d+)", PAGE.read_text())}


@pytest.mark.nightly
@pytest.mark.parametrize("spec", specs().values(), ids=lambda spec: spec.short_name)
def test_the_page_states_what_policies_earn(spec: WorldSpec) -> None:
    row = next(row for row in ROWS if row[:2] == [spec.short_name, f"`{spec.levels[0]}`"])
    world = make_world(spec.id, **spec.check_options)
    role, *others = world.spec.roles
    opponents = {one: baselines(spec)[scripted_opponent(spec, one)] for one in others}
    for policy, cell in zip(("null", "random", "oracle"), row[3:6], strict=True):
        players = {**opponents, role: baselines(spec)[policy]}
        played = play_all(world, world.first_tasks("test", TASKS), players, 0)
        assert f"{sum(one.returns[role] for one in played) / TASKS:.3f}" == cell.split()[0]


@pytest.mark.nightly
def test_the_page_on_forecasts_explains_a_hard_task() -> None:
    page = (ROOT / "docs" / "worlds" / "forecast.md").read_text()
    page = page[page.index("## A hard question") :].partition("\n## ")[0]
    shown = " ".join(line[2:] for line in page.splitlines() if line.startswith("> "))
    stated = re.findall(r"`(Probability: 0\.\d{3})`", page)[:4]
    earned = [float(mean) for mean in re.findall(r"\bearns (0\.\d{3})", page)[:3]]
    world = make_world("forecast", "expert", label="expected")
    task = next(one for one in world.first_tasks("test", 60) if shown in world.start(one).text)
    policies = (baselines("forecast")[name] for name in ("half", "fitted", "likeliest", "oracle"))
    played = [play(world, task, policy) for policy in policies]
    said = [float(one.replies[0].removeprefix("Probability: ")) for one in played]
    assert said == pytest.approx([float(reply[-5:]) for reply in stated], abs=5.1e-4)
    returns = [one.returns["forecaster"] for one in played]
    assert returns == pytest.approx([*earned, earned[-1]], abs=1e-3)
    assert returns[3] == pytest.approx(world.optimum(task)["forecaster"].value, abs=1e-4)


def test_the_readme_states_the_range_of_textbook_rules() -> None:
    page = (ROOT / "README.md").read_text()
    low, high = map(int, re.findall(r"Textbook rules gain from (\d+) to (\d+) %", page)[0])
    best = [
        max(rung["share"]["value"] for rung in row["ladder"]["rungs"] if rung["kind"] == "textbook")
        for row in shipped_rows()
        if "textbook" in {rung["kind"] for rung in row.get("ladder", {"rungs": []})["rungs"]}
    ]
    assert (round(100 * min(best)), round(100 * max(best))) == (low, high)
