"""A sound reward keeps every law and its ties are counted; of a broken one the law is named."""

import math
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import strategies as st

from tokengym.rewards.bounds import GRID, Range, dyadic
from tokengym.testing import LawBroken, check_reward

on_grid = st.integers(0, 65536).map(lambda n: n / GRID)
unit = st.floats(0.0, 1.0)
ticks = count()


def brier(p: float, y: int) -> float:
    return 1.0 - (p - y) ** 2


def length(reply: str) -> float:
    return dyadic(1.0 / (1.0 + len(reply)))


def test_a_sound_reward_is_told_by_its_values_and_ties() -> None:
    found = check_reward(brier, unit, st.sampled_from([0, 1]), range=(0.0, 1.0), seed=0)
    assert 0.0 <= found.lowest < found.highest <= 1.0
    assert 10 < found.inputs <= 200
    assert found.ties["reward_tie_eligible_groups"] == math.ceil(found.inputs / 8) - (
        found.inputs % 8 == 1
    )
    assert 0.0 < found.ties["reward_tie_pair_rate"] < 0.5


@pytest.mark.nightly
def test_without_strategies_it_is_called_with_replies_hostile_ones_too() -> None:
    found = check_reward(length, range=Range(0.0, 1.0), dyadic=True, seed=0)
    assert found.lowest < 1e-3
    assert found.highest == 1.0


def test_arguments_may_be_named() -> None:
    found = check_reward(brier, range=(0.0, 1.0), p=unit, y=st.just(1), examples=20)
    assert found.inputs <= 20


@pytest.mark.nightly
def test_a_reward_that_never_differs_ties_always() -> None:
    with pytest.raises(LawBroken, match=r"100% of the pairs of \d+ inputs"):
        check_reward(lambda reply: 0.5, range=(0.0, 1.0))
    found = check_reward(lambda reply: 0.5, range=(0.0, 1.0), ties=1.0)
    assert found.lowest == found.highest == 0.5
    assert found.ties["reward_tie_pair_rate"] == 1.0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("reward", "law"),
    [
        (lambda x: 1.0 / x, "rewards_do_not_raise"),
        (lambda x: math.nan if x > 0.5 else x, "rewards_are_finite"),
        (lambda x: math.inf * (x > 0.5) if x else 0.0, "rewards_are_finite"),
        (lambda x: 0.001 * (next(ticks) % 2), "rewards_are_deterministic"),
        (lambda x: 2.0 * x, "rewards_lie_in_their_range"),
        (lambda x: x / 3.0, "rewards_lie_on_the_grid"),
    ],
)
def test_the_law_that_is_broken_is_named(reward: Callable[[float], float], law: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_reward(reward, on_grid, range=(0, 1), dyadic=True)
    assert caught.value.law == law
    assert caught.value.where == "<lambda>"
    assert str(caught.value).startswith(caught.value.statement)


def test_the_simplest_arguments_are_shown() -> None:
    with pytest.raises(LawBroken, match=r"  101: 1.01 is not in \[0, 1\]") as caught:
        check_reward(lambda n: n / 100, st.integers(0, 10_000), range=(0, 1))
    assert caught.value.law == "rewards_lie_in_their_range"


def test_rounding_may_be_allowed_for() -> None:
    ends = st.sampled_from([0.0, 1.0])
    check_reward(lambda x: x + 1e-13, ends, range=(0, 1), slack=1e-12)
    with pytest.raises(LawBroken):
        check_reward(lambda x: x + 1e-13, ends, range=(0, 1))
