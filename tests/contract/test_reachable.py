"""What can be reached at a level: declared by every level, and exact only where it is proved."""

import pytest

from tokengym.agents.scale.ladder import shipped_ladder
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines, make_world, spec

REACHABLE = {
    **{("energy", level): False for level in ("small", "evening", "household")},
    **{("warehouse", level): True for level in ("pick", "aisle", "pick_clauses", "stock", "lease")},
    ("warehouse", "pick_online"): False,
    ("forecast", "easy"): True,
    ("disruption", "L2"): False,
    ("disruption", "first_year"): False,
}
"""By world and level, whether a policy that knows only what is shown can earn the optimum."""


@pytest.mark.parametrize("case", REACHABLE, ids="-".join)
def test_exact_means_that_what_is_shown_suffices(case: tuple[str, str]) -> None:
    world = make_world(*case)
    optimum = world.optimum(world.task("test", 0))
    assert optimum[spec(case[0]).roles[0]].exact is REACHABLE[case]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_every_level_says_who_reaches_what(name: str) -> None:
    declared, known = spec(name), baselines(name)
    assert set(declared.reachable) == set(declared.levels)
    assert {best.policy for best in declared.reachable.values()} <= known.keys()
    assert set(declared.planners) <= known.keys()
    for level, best in declared.reachable.items():
        world = make_world(name, level, **declared.check_options)
        limit = world.optimum(world.task("test", 0))[declared.roles[0]]
        assert best.proved <= limit.exact, f"only an exact optimum proves {level}'s {best}"


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_levels_paid_at_the_end_pay_nothing_before(name: str) -> None:
    declared = spec(name)
    assert set(declared.paid_at_end) <= set(declared.levels)
    for level in declared.levels:
        world = make_world(name, level)
        played = play(world, world.task("test", 0), baselines(name)["noisy"])
        paid = [any(turn.rewards.values()) for turn in played.turns[1:-1]]
        assert not (any(paid) and level in declared.paid_at_end), level
        assert any(paid) or level in declared.paid_at_end or level.startswith("desk"), level


@pytest.mark.parametrize("name", ["forecast", "energy", "warehouse", "disruption"])
def test_no_baseline_on_file_gains_more_than_the_one_declared(name: str) -> None:
    for level, best in spec(name).reachable.items():
        ladder = shipped_ladder(make_world(name, level), spec(name).roles[0])
        assert ladder is not None
        known = [one.policy for one in ladder.rungs if one.kind != "bound" and one.policy]
        played = {"replan": "oracle"} if best.policy == "oracle" else {}
        assert played.get(known[-1], known[-1]) == best.policy, level
