"""The first table of the README holds what its command prints."""

import re
from pathlib import Path

import pytest

from tokengym.agents.analysis.evaluate import play_all
from tokengym.envs.core.play import Policy
from tokengym.envs.registry import (
    baselines,
    import_object,
    make_world,
    scripted_opponent,
    spec,
)

PAGES = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.split("|")[1:-1]]
    for line in (PAGES / "README.md").read_text().splitlines()
    if line.startswith("| `tokengym/")
]
(TASKS,) = {
    int(n) for n in re.findall(r"check --all --tasks (\d+)", (PAGES / "docs/worlds.md").read_text())
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip("`"))
def test_the_readme_states_what_policies_earn(row: list[str]) -> None:
    name, _, random, blind, *best = row
    world = make_world(name.strip("`"), **spec(name.strip("`")).check_options)
    tasks = {split: world.first_tasks(split, TASKS) for split in ("validation", "test")}
    role = world.spec.roles[0]
    others = {
        other: baselines(world.spec)[scripted_opponent(world.spec, other)]
        for other in world.spec.roles[1:]
    }
    mean_of = {one.split()[1].strip("`"): one.split()[0] for one in best}
    reachable = best[1].split()[1].strip("`")

    def mean(policy: Policy, split: str = "test") -> str:
        played = play_all(world, tasks[split], {**others, role: policy}, 0)
        return f"{sum(one.returns[role] for one in played) / TASKS:.3f}"

    # Planning takes seconds.
    for player in mean_of.keys() - set(world.spec.planners):
        assert mean(baselines(world.spec)[player]) == mean_of[player]
    assert mean(baselines(world.spec)["random"]) == random.split()[0]
    policies = import_object(world.spec.blind)(world).values()
    assert mean(max(policies, key=lambda policy: float(mean(policy, "validation")))) == blind
    assert reachable == world.spec.reachable[world.level].policy
