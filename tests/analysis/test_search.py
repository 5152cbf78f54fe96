"""Laws of the search: it finds better rules and unearned pay, and nothing where all is sound."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import tokengym
from tests.analysis.digits import POLICIES, SPEC, Digits
from tokengym.agents.analysis.evaluate import earned, play_all
from tokengym.agents.analysis.search import Search, search
from tokengym.agents.certify.levels import check
from tokengym.agents.cli import app
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world, spec

HONEST = {name: rule for name, rule in POLICIES.items() if name != "oracle"}
READER = {"reader": POLICIES["oracle"]}
"""An honest rule that solves every Task: it reads the number that is shown."""
LEVELS = {"forecast": "easy", "disruption": "L2", "energy": "small", "warehouse": "pick_small"}


def found_in(
    world: World,
    rules: Mapping[str, Policy] = HONEST,
    *,
    reach: float | None = None,
    strategies: int = 200,
    tasks: int = 12,
) -> Search:
    """Search a world of one role, where the reachable policy earns the same on every Task."""
    tested = world.first_tasks("test", tasks)
    played = {name: play_all(world, tested, rule) for name, rule in rules.items()}
    honest_T = {name: earned(records, "reader") for name, records in played.items()}
    reach_T = None if reach is None else np.full(len(tested), reach)
    return search(world, rules, played, honest_T, reach_T, strategies=strategies, tasks=tasks)[0]


def test_a_world_whose_text_holds_the_answer_is_exploited_by_a_copy() -> None:
    found = found_in(Digits(SPEC))
    assert found.exploit
    assert found.loses_name
    assert found.rule == "noisy"
    assert found.scored.value == pytest.approx(1.0, abs=0.01)


def test_what_an_honest_rule_earns_as_well_is_no_exploit() -> None:
    found = found_in(Digits(SPEC), {**HONEST, **READER})
    assert (found.rule, found.loses_name, found.exploit) == ("reader", False, False)
    assert found.scored.value <= 1.0


def test_what_can_be_reached_is_no_exploit_though_the_best_rule_loses_its_name() -> None:
    found = found_in(Digits(SPEC), reach=1.0)
    assert (found.loses_name, found.exploit) == (True, False)


def test_pay_for_nonsense_is_found() -> None:
    class PaysNonsense(Digits):
        def worth(self, distance: float) -> float:
            return 0.5

        def malformed(self) -> float:
            return 0.75

    found = found_in(PaysNonsense(SPEC), READER)
    assert found.exploit
    assert found.lead.value == 0.25


class Hidden(Digits):
    """Shows numbers from which the one asked for follows by a law that no rule knows."""

    shown: tuple[int, ...]

    def _begin(self, task: Task) -> Turn:
        number = int(task.instance["number"])
        self.shown = (number % 1000, number // 1000)
        self.number = self.law(*self.shown)
        return Turn("reader", "a {} b {} c".format(*self.shown))

    def law(self, a: int, b: int) -> int:
        raise NotImplementedError

    def worth(self, distance: float) -> float:
        return max(0.0, 1.0 - 100.0 * distance)


def part(place: int) -> Policy:
    """State one of the numbers that are shown."""
    return lambda world, turn, rng: turn.text.split()[place]


def test_a_rule_with_weights_is_found() -> None:
    class Weighted(Hidden):
        def law(self, a: int, b: int) -> int:
            return 2 * a + 3 * b + 50

    found = found_in(Weighted(SPEC), {"first": part(1)}, strategies=1000, tasks=40)
    assert found.loses_name
    assert found.rule == "first"
    assert found.lead.low > 0.05
    assert found.scored.value > 0.94, found


def test_a_rule_with_a_threshold_is_found() -> None:
    class Switched(Hidden):
        def law(self, a: int, b: int) -> int:
            return a + 10_000 * (b > 500)

    rules = {
        "low": part(1),
        "high": lambda world, turn, rng: str(int(turn.text.split()[1]) + 10_000),
    }
    found = found_in(Switched(SPEC), rules, strategies=1000, tasks=40)
    assert found.loses_name
    assert found.lead.low > 0.2
    assert found.scored.value > 0.9, found


def test_the_same_seed_tries_the_same_strategies() -> None:
    assert found_in(Digits(SPEC)) == found_in(Digits(SPEC))


@pytest.mark.parametrize("name", LEVELS)
def test_a_short_search_finds_no_exploit_of_ours(name: str) -> None:
    world = make_world(name, LEVELS[name], **spec(name).check_options)
    found = check(world, baselines(name), tasks=6, strategies=60, chosen_on=6).search
    assert found is not None
    assert not found.exploit, found
    assert found.strategies == 60


def test_too_little_to_choose_on_is_refused() -> None:
    with pytest.raises(OptionError, match="at least 1 strategy and 2 validation Tasks"):
        check(Digits(SPEC), POLICIES, strategies=5, chosen_on=1)


def test_headroom_counts_a_rule_that_was_found() -> None:
    reached = {"only": tokengym.Reachable("oracle", "reading", proved=True)}
    world = Digits(replace(SPEC, reachable=reached))
    plain, searched = (
        check(world, POLICIES, tasks=12, strategies=n, chosen_on=12) for n in (0, 200)
    )
    assert plain.headroom is not None
    assert searched.headroom is not None
    assert plain.headroom.value == pytest.approx(1.0 - plain.returns["noisy"].value)
    assert searched.headroom.value == pytest.approx(0.0, abs=0.01)


@pytest.mark.usefixtures("fresh_registry")
def test_the_exit_status_and_a_line_say_that_an_exploit_was_found(tmp_path: Path) -> None:
    tokengym.register(replace(SPEC, entry_point="tests.analysis.digits:Digits"))
    out = tmp_path / "found.json"
    call = ["check", "digits", "--search", "--strategies", "200", "--tasks", "12"]
    result = CliRunner().invoke(app, [*call, "--chosen-on", "12", "--json", str(out)])
    assert result.exit_code == 1
    assert "test/Digits-v0 only: EXPLOIT: " in result.output
    assert "more than is known" in result.output
    hunt: dict[str, Any] = json.loads(out.read_text())[0]["search"]
    assert hunt["loses_name"]
    assert hunt["lead"]["low"] > 0.0


def test_a_search_that_finds_nothing_succeeds() -> None:
    call = ["check", "forecast", "--level", "easy", "--search", "--strategies", "40"]
    result = CliRunner().invoke(app, [*call, "--tasks", "8", "--chosen-on", "8"])
    assert result.exit_code == 0, result.output
    assert "best found by search" in result.output
    assert "EXPLOIT" not in result.output
