"""Laws of the reward grid and of declared ranges."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.bounds import GRID, Range, RewardRangeError, dyadic


@given(st.floats(-2, 2))
def test_rounding_moves_less_than_a_step(value: float) -> None:
    rounded = dyadic(value)
    assert rounded * GRID == int(rounded * GRID)
    assert abs(rounded - value) <= 0.5 / GRID
    assert dyadic(rounded) == rounded


@given(st.floats(-1, 2), st.integers(2, 64))
def test_equal_rewards_have_an_advantage_of_exactly_zero_in_float32(
    value: float, size: int
) -> None:
    rewards = np.full(size, dyadic(value), dtype=np.float32)
    total = np.float32(0)
    for reward in rewards:
        total = np.float32(total + reward)
    if size & (size - 1) == 0:
        assert (rewards - total / np.float32(size) == 0).all()
    assert float(total) == dyadic(value) * size


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(RewardRangeError, match="finite"):
        dyadic(value)
    with pytest.raises(RewardRangeError, match="outside its range"):
        Range(0, 1).require(value, "reward")


@pytest.mark.parametrize(("low", "high"), [(1, 0), (-math.inf, 0), (0, math.nan)])
def test_a_range_is_finite_and_in_order(low: float, high: float) -> None:
    with pytest.raises(RewardRangeError):
        Range(low, high)


def test_the_error_names_the_value_and_the_range() -> None:
    with pytest.raises(RewardRangeError, match=r"return of 'a' is 1.5, outside its range \[0, 1\]"):
        Range(0, 1).require(1.5, "return of 'a'")
