"""Laws of filtering: whole groups, one reason each, a budget that holds, cases others got wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.rollouts import group_of
from tokengym.agents.training.batches.credit import advantages, spreads
from tokengym.agents.training.batches.datums import turn_table
from tokengym.agents.training.batches.filtering import (
    GroupSignal,
    counts,
    further_groups,
    judge,
    tie_levels,
)
from tokengym.agents.training.config import Algorithm
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import MINIMUM_SPREAD
from tokengym.rewards.bounds import Range
from tokengym.rewards.ties import tie_statistics

DEFAULT = Algorithm()
LIVE, TIE, RESOLUTION = GroupSignal.LIVE, GroupSignal.TIE, GroupSignal.RESOLUTION

tables = st.lists(
    st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=5),
    min_size=1,
    max_size=6,
)


def verdicts(rows: list[list[float]], choices: Algorithm = DEFAULT) -> list[GroupSignal]:
    return judge(spreads(choices, turn_table([group_of(*row) for row in rows])), choices.min_spread)


@given(tables)
def test_unresolved_dead_groups_are_the_uniform_ones(
    rows: list[list[float]],
) -> None:
    found = verdicts(rows)
    uniform = [tie_statistics([row])["reward_uniform_group_rate"] == 1.0 for row in rows]
    assert [verdict is TIE for verdict in found] == uniform
    assert RESOLUTION not in found


@given(tables, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_coarser_resolution_only_kills(rows: list[list[float]], one: float, two: float) -> None:
    finer, coarser = (verdicts(rows, Algorithm(min_spread=least)) for least in sorted((one, two)))
    for before, after in zip(finer, coarser, strict=True):
        assert before is LIVE or after is not LIVE


@pytest.mark.nightly
@given(tables, st.floats(0.0, 2.0))
def test_every_group_has_one_verdict_and_all_are_counted(
    rows: list[list[float]], least: float
) -> None:
    found = verdicts(rows, Algorithm(min_spread=least))
    assert sum(counts(found).values()) == len(rows)
    levels = [
        tie_levels(verdict, float(np.mean(row)), Range(0.0, 1.0))
        for verdict, row in zip(found, rows, strict=True)
    ]
    assert sum(sum(level.values()) for level in levels) == found.count(TIE)


@given(st.integers(0, 20), st.integers(0, 5000), st.lists(st.integers(1, 400), min_size=1))
def test_budgets_hold_while_groups_grow_no_dearer(
    missing: int, budget: int, costs: list[int]
) -> None:
    dearest, spent, drawn = max(costs), 0, 0
    while count := further_groups(missing, budget, spent, dearest):
        assert count <= missing
        for place in range(count):
            spent += costs[(drawn + place) % len(costs)]
        drawn += count
    assert spent <= budget
    assert missing == 0 or budget - spent < dearest


def test_nothing_is_drawn_without_need_or_budget() -> None:
    assert further_groups(0, 1000, 0, 10) == 0
    assert further_groups(3, 0, 0, 10) == 0
    assert further_groups(3, 1000, 990, 20) == 0
    assert further_groups(3, 1000, 0, 400) == 2


# What users of other trainers asked for or got wrong


def test_near_ties_of_a_composed_reward_are_no_signal() -> None:
    """Twinkle 288: near-ties standardised to advantages as large as real differences."""
    near, real = [0.500, 0.501, 0.5005], [0.1, 0.9, 0.4]
    choices = Algorithm("group_standardised", min_spread=0.02)
    assert verdicts([near, real], choices) == [RESOLUTION, LIVE]
    found = advantages(choices, turn_table([group_of(*near), group_of(*real)]))
    assert not found[0].any()
    assert found[1].all()
    blown_up = advantages(Algorithm("group_standardised"), turn_table([group_of(*near)]))
    assert np.abs(blown_up).max() > 0.9


def test_ties_are_told_apart_by_where_they_lie() -> None:
    """Verl 5228: all failed, all succeeded, all the same in between."""
    rows = [[0.0, 0.0], [1.0, 1.0], [0.5, 0.5], [0.0, 1.0]]
    found = [
        [name for name, count in tie_levels(verdict, mean, Range(0.0, 1.0)).items() if count]
        for verdict, mean in zip(verdicts(rows), (0.0, 1.0, 0.5, 0.5), strict=True)
    ]
    assert found == [["tie_lowest"], ["tie_highest"], ["tie_between"], []]


def test_a_dead_group_is_found_by_its_own_spread() -> None:
    """TRL 6367: under a batch-wide deviation no group was ever dead, or all of them were."""
    choices = Algorithm("reinforce_plus_plus", filter="drop")
    assert verdicts([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], choices) == [TIE, TIE, LIVE]


@pytest.mark.parametrize(
    ("given_", "named"),
    [
        ({"estimator": "ppo"}, "estimator"),
        ({"credit": "token"}, "credit"),
        ({"filter": "mask"}, "filter"),
        ({"denominator": "tokens"}, "denominator"),
        ({"min_spread": -1.0}, "min-spread"),
        ({"min_spread": float("nan")}, "min-spread"),
        ({"resample_tokens": 100}, "--filter resample"),
        ({"filter": "resample", "resample_tokens": -1}, "resample-tokens"),
        ({"estimator": "remax", "credit": "turn"}, "remax"),
    ],
)
def test_choices_that_cannot_be_are_refused_by_name(given_: dict[str, object], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        Algorithm(**given_)  # type: ignore[arg-type]


def test_the_smallest_difference_a_world_can_pay_is_no_tie() -> None:
    assert verdicts([[0.5, 0.5 + 2.0**-16]]) == [LIVE]
    assert verdicts([[0.5, 0.5 + MINIMUM_SPREAD / 2]]) == [TIE]
