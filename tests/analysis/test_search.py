"""Laws of the search for exploits: it finds what pays unsolved, and nothing where all is sound."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import tokengym
from tests.analysis.digits import POLICIES, SPEC, Digits
from tokengym.agents.analysis.search import Search, search
from tokengym.agents.cli import app
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec

READER = {"reader": POLICIES["oracle"]}
"""An honest rule that solves every Task: it reads the number that is shown."""
LEVELS = {"forecast": "easy", "disruption": "L2", "energy": "small", "warehouse": "pick_small"}


def found_in(world: World, policies: Mapping[str, Policy] = POLICIES) -> Search:
    return search(world, policies, strategies=200, tasks=12)


def test_a_world_whose_text_holds_the_answer_is_exploited_by_a_copy() -> None:
    found = found_in(Digits(SPEC))
    assert found.exploit
    assert found.rule == "noisy"
    assert found.scored.value == pytest.approx(1.0, abs=0.01)
    assert found.lead.value == pytest.approx(found.scored.value - found.honest.value)


def test_what_an_honest_rule_earns_as_well_is_no_exploit() -> None:
    found = found_in(Digits(SPEC), {**POLICIES, **READER})
    assert (found.rule, found.exploit) == ("reader", False)
    assert found.scored.value <= found.honest.value == 1.0


def test_pay_for_nonsense_is_found() -> None:
    class PaysNonsense(Digits):
        def worth(self, distance: float) -> float:
            return 0.5

        def malformed(self) -> float:
            return 0.75

    policies = {**READER, "oracle": POLICIES["oracle"]}
    found = found_in(PaysNonsense(SPEC), policies)
    assert found.exploit
    assert found.lead.value == 0.25


def test_the_same_seed_tries_the_same_strategies() -> None:
    assert found_in(Digits(SPEC)) == found_in(Digits(SPEC))


@pytest.mark.parametrize("name", LEVELS)
def test_a_short_search_finds_no_exploit_of_ours(name: str) -> None:
    world = make_world(name, LEVELS[name], **spec(name).check_options)
    found = search(world, baselines(name), strategies=60, tasks=6)
    assert not found.exploit, found
    assert found.strategies == 60


def test_too_little_to_choose_and_score_on_is_refused() -> None:
    for wanted in ({"strategies": 0}, {"tasks": 1}):
        with pytest.raises(OptionError, match="at least 1 strategy and 2 Tasks"):
            search(Digits(SPEC), POLICIES, **wanted)


@pytest.mark.usefixtures("fresh_registry")
def test_the_exit_status_and_a_line_say_that_an_exploit_was_found() -> None:
    tokengym.register(
        replace(
            SPEC,
            entry_point="tests.analysis.digits:Digits",
            baselines="tests.analysis.digits:POLICIES",
        )
    )
    call = ["check", "digits", "--search", "--strategies", "200", "--tasks", "12"]
    result = CliRunner().invoke(app, call)
    assert result.exit_code == 1
    assert "EXPLOIT test/Digits-v0 only: " in result.output
    assert "more than noisy" in result.output


def test_a_search_that_finds_nothing_succeeds() -> None:
    call = ["check", "forecast", "--level", "easy", "--search", "--strategies", "40"]
    result = CliRunner().invoke(app, [*call, "--tasks", "8"])
    assert result.exit_code == 0, result.output
    assert "the best honest rule, earns" in result.output
    assert "EXPLOIT" not in result.output
