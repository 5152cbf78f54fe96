"""Laws of the bound of chance: above every binomial tail, 1 at the expectation, 0 at the ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from tokengym.rewards.bounds import Range
from tokengym.rewards.chance import chance_of_mean

UNIT = Range(0.0, 1.0)


@given(st.integers(1, 60), st.floats(0.01, 0.99), st.data())
def test_it_is_at_least_the_chance_of_those_wins(
    count: int, expected: float, data: st.DataObject
) -> None:
    wins = data.draw(st.integers(0, count).filter(lambda wins: wins >= expected * count))
    exact = binom.sf(wins - 1, count, expected)
    assert chance_of_mean(wins / count, expected, UNIT, count) >= exact * (1.0 - 1e-9)


@given(st.floats(0.05, 0.9), st.floats(0.0, 0.1), st.integers(1, 50), st.floats(0.5, 8.0))
def test_it_falls_with_lead_and_count_without_units(
    expected: float, lead: float, count: int, scale: float
) -> None:
    bound = chance_of_mean(expected + lead, expected, UNIT, count)
    assert chance_of_mean(expected, expected, UNIT, count) == 1.0
    assert chance_of_mean(expected + lead, expected, UNIT, count + 1) <= bound <= 1.0
    # Of a lead near the precision of the numbers, rounding decides.
    assert chance_of_mean(expected + lead / 2, expected, UNIT, count) >= bound * (1.0 - 1e-9)
    moved = Range(-scale, scale)
    found, mean = (scale * (2 * share - 1) for share in (expected + lead, expected))
    assert chance_of_mean(found, mean, moved, count) == pytest.approx(bound, abs=1e-9)


def test_winning_always_is_as_likely_as_its_product() -> None:
    assert chance_of_mean(1.0, 0.5, UNIT, 10) == pytest.approx(0.5**10)


@pytest.mark.parametrize("expected", [0.0, 1.0, -0.5, 1.5])
def test_the_ends_of_the_range_leave_nothing_to_chance(expected: float) -> None:
    assert chance_of_mean(1.0, expected, UNIT, 3) == 0.0
