"""Laws of filtering: whole groups, a budget that holds, cases others got wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.rollouts import group_of
from tokengym.agents.training.batches.collect import further_groups
from tokengym.agents.training.batches.credit import advantages, spreads
from tokengym.agents.training.batches.datums import turn_table
from tokengym.agents.training.config import Algorithm
from tokengym.envs.core.errors import OptionError
from tokengym.rewards.advantages import MINIMUM_SPREAD
from tokengym.rewards.ties import tie_statistics

DEFAULT = Algorithm()

tables = st.lists(
    st.lists(st.integers(0, 4).map(lambda n: n / 4), min_size=2, max_size=5), min_size=1, max_size=6
)


def live(rows: list[list[float]], choices: Algorithm = DEFAULT) -> list[bool]:
    spread_N = spreads(choices, turn_table([group_of(*row) for row in rows]))
    found: list[bool] = (spread_N > choices.min_spread).tolist()
    return found


@given(tables)
def test_unresolved_dead_groups_are_the_uniform_ones(rows: list[list[float]]) -> None:
    uniform = [tie_statistics([row])["reward_uniform_group_rate"] == 1.0 for row in rows]
    assert live(rows) == [not one for one in uniform]


@given(tables, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_coarser_resolution_only_kills(rows: list[list[float]], one: float, two: float) -> None:
    finer, coarser = (live(rows, Algorithm(min_spread=least)) for least in sorted((one, two)))
    assert all(before or not after for before, after in zip(finer, coarser, strict=True))


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
    assert live([near, real], choices) == [False, True]
    found = advantages(choices, turn_table([group_of(*near), group_of(*real)]))
    assert not found[0].any()
    assert found[1].all()
    blown_up = advantages(Algorithm("group_standardised"), turn_table([group_of(*near)]))
    assert np.abs(blown_up).max() > 0.9


def test_a_dead_group_is_found_by_its_own_spread() -> None:
    """TRL 6367: under a batch-wide deviation no group was ever dead, or all of them were."""
    choices = Algorithm("reinforce_plus_plus", filter="drop")
    assert live([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]], choices) == [False, False, True]


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
    ],
)
def test_choices_that_cannot_be_are_refused_by_name(given_: dict[str, object], named: str) -> None:
    with pytest.raises(OptionError, match=named):
        Algorithm(**given_)  # type: ignore[arg-type]


def test_the_smallest_difference_a_world_can_pay_is_no_tie() -> None:
    assert live([[0.5, 0.5 + 2.0**-16], [0.5, 0.5 + MINIMUM_SPREAD / 2]]) == [True, False]
