"""The first table of the README holds what its command prints."""

import re
from pathlib import Path

import pytest

from tokengym.agents.analysis.evaluate import play_all
from tokengym.envs.registry import baselines, make_world, spec

PAGES = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (PAGES / "README.md").read_text().splitlines()
    if line.startswith("| `tokengym/")
]
(TASKS,) = {
    int(n) for n in re.findall(r"check --all --tasks (\d+)", (PAGES / "docs/tables.md").read_text())
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_the_readme_states_what_policies_earn(row: list[str]) -> None:
    name, _, null, random, rule, optimum = row
    world = make_world(name.strip("`"), **spec(name.strip("`")).check_options)
    tasks, role = world.first_tasks("test", TASKS), world.spec.roles[0]
    best, _, policy = rule.replace("`", "").partition(" ")
    stated_of = {"null": null, "random": random, policy: best}
    # Planning takes seconds.
    for player in stated_of.keys() - set(world.spec.planners):
        played = play_all(world, tasks, baselines(world.spec.id)[player], 0)
        assert f"{sum(one.returns[role] for one in played) / TASKS:.3f}" == stated_of[player]
    limits = [world.optimum(task)[role].value for task in tasks]
    assert f"{sum(limits) / TASKS:.3f}" == optimum.removesuffix(" (bound)")
