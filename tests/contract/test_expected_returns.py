"""Where outcomes are drawn from known probabilities, an episode says what it earns on average."""

import pytest

from tests.every import every
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.turn import expected_return
from tokengym.envs.registry import baselines, make_world, spec

CASES = [(name, level) for name in ("forecast", "disruption") for level in spec(name).levels]


def silent(*_: object) -> str:
    return "I cannot say."


def episode(case: tuple[str, str], label: str, policy: Policy) -> PlayedEpisode:
    world = make_world(*case, label=label)
    return play(world, world.task("test", 2), policy, seed=4)


@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES, ids="-".join)
@every("name", ["random", "noisy", "silent"])
def test_it_is_the_return_under_the_exact_probabilities(case: tuple[str, str], name: str) -> None:
    policy = baselines(case[0]).get(name, silent)
    on_outcomes, exact = (episode(case, label, policy) for label in ("outcome", "expected"))
    assert on_outcomes.replies == exact.replies
    for role in spec(case[0]).roles:
        assert on_outcomes.metrics[expected_return(role)] == exact.returns[role]
    if name != "silent":
        assert on_outcomes.returns != exact.returns
