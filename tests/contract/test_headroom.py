"""Every world has a level where even the best honest rule leaves much to be learned."""

import numpy as np
import pytest

from tokengym.agents.analysis.evaluate import evaluate
from tokengym.envs.core.play import Policy
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, import_object, make_world, spec

LEVELS = {
    "forecast": ("expert", 100),
    "energy": ("operations", 40),
    "warehouse": ("full_volatile", 15),
    "disruption": ("examples", 60),
}
"""By world its level, and the Tasks it is measured on."""
MOST_CLOSED = 0.7


@pytest.mark.parametrize("name", LEVELS)
def test_the_best_honest_rule_closes_little_of_the_way_from_blind_to_optimum(name: str) -> None:
    level, count = LEVELS[name]
    world = make_world(name, level, **spec(name).check_options)
    tasks = world.first_tasks("test", count)
    role = spec(name).roles[0]

    def best(policies: dict[str, Policy]) -> float:
        return max(
            evaluate(world, tasks, {**others(world, role), role: policy}).value
            for policy in policies.values()
        )

    blind = best(import_object(spec(name).blind)(world))
    honest = best({k: rule for k, rule in baselines(name).items() if k != "oracle"})
    optimum = float(np.mean([world.optimum(task)[role].value for task in tasks]))
    assert blind < honest < blind + MOST_CLOSED * (optimum - blind)


REACHABLE = {
    **{("energy", level): False for level in ("small", "operations", "comfort")},
    **{("warehouse", level): True for level in ("pick_small", "stock", "lease_small")},
    **{("warehouse", level): False for level in ("pick_online", "inventory_lost", "full")},
    ("warehouse", "full_volatile"): False,
    ("forecast", "easy"): True,
    ("disruption", "L2"): False,
}
"""By world and level, whether a policy that knows only what is shown can earn the optimum."""


@pytest.mark.parametrize("case", REACHABLE, ids="-".join)
def test_exact_means_that_what_is_shown_suffices(case: tuple[str, str]) -> None:
    world = make_world(*case)
    optimum = world.optimum(world.task("test", 0))
    assert optimum[spec(case[0]).roles[0]].exact is REACHABLE[case]


def others(world: World, role: str) -> dict[str, Policy]:
    """Scripts in the other roles."""
    known = baselines(world.spec.id)
    return {other: known["scripted"] for other in world.spec.roles if other != role}


@pytest.mark.parametrize("name", LEVELS)
def test_every_level_says_what_can_be_reached_and_by_which_baseline(name: str) -> None:
    declared, known = spec(name), baselines(name)
    assert set(declared.reachable) == set(declared.levels)
    assert {best.policy for best in declared.reachable.values()} <= known.keys()
    assert set(declared.planners) <= known.keys()
    for level, best in declared.reachable.items():
        world = make_world(name, level, **declared.check_options)
        limit = world.optimum(world.task("test", 0))[declared.roles[0]]
        assert best.proved <= limit.exact, f"only an exact optimum proves {level}'s {best}"
