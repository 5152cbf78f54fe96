"""Much is left to learn at some levels of every world, little at its warm-ups."""

import pytest

from tokengym.agents.analysis.evaluate import evaluate, scripted_opponents
from tokengym.envs.core.play import Policy
from tokengym.envs.core.spec import WARM_UP
from tokengym.envs.registry import baselines, import_object, make_world, spec

MUCH = {
    ("forecast", "expert"): 100,
    ("forecast", "twins"): 40,
    ("energy", "ev"): 10,
    ("energy", "comfort"): 10,
    ("warehouse", "lease"): 20,
    ("warehouse", "full_volatile"): 20,
    ("disruption", "examples"): 40,
    ("disruption", "private"): 60,
}
"""Levels with much headroom, and on how many Tasks it is measured."""
LEAST = 0.35
WARM_UPS = [(name, level) for name in ("forecast", "disruption") for level in spec(name).warm_up]


def headroom(name: str, level: str, count: int) -> float:
    """(reachable - best simple) / (reachable - best blind), on test Tasks."""
    declared, known = spec(name), baselines(name)
    world = make_world(name, level, **declared.check_options)
    tasks, role = world.first_tasks("test", count), declared.roles[0]

    def best(policies: dict[str, Policy]) -> float:
        return max(
            evaluate(world, tasks, {**scripted_opponents(world), role: policy}).value
            for policy in policies.values()
        )

    not_simple = {"oracle", *declared.planners}
    simple = best({rule: known[rule] for rule in known.keys() - not_simple})
    blind = best(import_object(declared.blind)(world))
    reachable = best({"": known[declared.reachable[level].policy]})
    assert blind < reachable
    return (reachable - simple) / (reachable - blind)


@pytest.mark.parametrize("case", MUCH, ids="-".join)
def test_much_is_left_to_learn(case: tuple[str, str]) -> None:
    assert headroom(*case, MUCH[case]) >= LEAST


@pytest.mark.parametrize("case", WARM_UPS, ids="-".join)
def test_a_simple_policy_does_nearly_all_at_a_warm_up(case: tuple[str, str]) -> None:
    assert headroom(*case, 100) <= WARM_UP


REACHABLE = {
    **{("energy", level): False for level in ("small", "operations", "comfort")},
    **{("warehouse", level): True for level in ("pick_small", "stock", "lease")},
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


@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_every_level_says_what_can_be_reached_and_by_which_baseline(name: str) -> None:
    declared, known = spec(name), baselines(name)
    assert set(declared.reachable) == set(declared.levels)
    assert {best.policy for best in declared.reachable.values()} <= known.keys()
    assert set(declared.planners) <= known.keys()
    for level, best in declared.reachable.items():
        world = make_world(name, level, **declared.check_options)
        limit = world.optimum(world.task("test", 0))[declared.roles[0]]
        assert best.proved <= limit.exact, f"only an exact optimum proves {level}'s {best}"
