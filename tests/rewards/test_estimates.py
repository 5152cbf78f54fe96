"""Laws of intervals: those of shares cover at least as often as they say, at 0 and 1 too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_shares_interval_is_clopper_and_pearsons(pair: tuple[int, int]) -> None:
    count, total = pair
    found, known = share_estimate(count, total), binomtest(count, total).proportion_ci()
    assert (found.value, found.samples) == (count / total, total)
    assert found.low == pytest.approx(known.low)
    assert found.high == pytest.approx(known.high)


def test_the_mean_of_values_in_the_unit_interval_is_covered() -> None:
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        values = rng.beta(0.1, 2.0, 40)
        found = share_estimate(float(values.sum()), 40)
        covered += found.low <= 0.1 / 2.1 <= found.high
    assert covered >= 285


def test_a_share_of_nothing_is_no_number() -> None:
    with pytest.raises(ValueError, match="between 0 and its total"):
        share_estimate(3, 2)
    assert np.isnan(share_estimate(0, 0).value)


@given(st.lists(st.integers(-1000, 1000).map(lambda n: n / 64), min_size=2, max_size=12))
def test_the_interval_of_a_mean_is_students(values: list[float]) -> None:
    found = mean_estimate(values)
    assert found.value == pytest.approx(np.mean(values))
    assert found.samples == len(values)
    if np.ptp(values) == 0.0:
        assert found.low == found.high == found.value
        return
    known = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((known.low, known.high))


def test_one_value_has_no_width_and_none_no_mean() -> None:
    assert mean_estimate([0.25]) == (0.25, 0.25, 0.25, 1)
    assert np.isnan(mean_estimate([])[:3]).all()
    assert str(mean_estimate([0.0, 1.0])) == "0.500 ± 6.353"


@pytest.mark.parametrize("level", [0.8, 0.9, 0.99])
def test_an_interval_of_another_level_is_exact_too(level: float) -> None:
    known = binomtest(3, 17).proportion_ci(level)
    assert share_estimate(3, 17, level)[1:3] == pytest.approx((known.low, known.high))


def test_values_that_agree_are_no_certainty() -> None:
    equal = mean_estimate([0.3] * 12)
    assert (str(equal), equal.shown) == ("0.300 (all 12 equal)", "0.300 (all 12 equal)")
    assert str(mean_estimate([0.3, 0.1 + 0.2] * 6)) == "0.300 (all 12 equal)"  # within rounding
    assert str(mean_estimate([0.3])) == "0.300"
    assert str(share_estimate(0, 30)) == "0.000 (0.000 to 0.116)"
    assert str(share_estimate(30, 30)) == "1.000 (0.884 to 1.000)"
    assert str(mean_estimate([0.3, 0.5])).startswith("0.400 ± ")


@pytest.mark.parametrize("value", [0.0, 1.0, 0.25])
def test_between_bounds_an_unseen_value_may_lie_at_either(value: float) -> None:
    """Were more than a share q other, n of them would agree in less than one of 40 samples."""
    found, unseen = mean_estimate([value] * 20, (0.0, 1.0)), 1.0 - 0.025 ** (1 / 20)
    assert found[1:3] == pytest.approx((value * (1.0 - unseen), value + unseen * (1.0 - value)))
    if value in (0.0, 1.0):
        assert found == pytest.approx(share_estimate(20 * value, 20))
    assert found.rest[:3] == pytest.approx((1.0 - value, 1.0 - found.high, 1.0 - found.low))
    assert mean_estimate([0.2, 0.4, 0.9], (0.0, 1.0)) == mean_estimate([0.2, 0.4, 0.9])


@given(*(st.floats(-3.0, 3.0),) * 2, st.floats(0.0, 2.0), st.booleans())
def test_the_ends_of_a_shown_interval_are_its_own(
    value: float, below: float, above: float, symmetric: bool
) -> None:
    """Of a lopsided interval neither end is the value ± half its width."""
    low, high = value - abs(below), value + (abs(below) if symmetric else above)
    words = str(Estimate(value, low, high, 9))
    middle, sign, half = words.partition(" ± ")
    ends: tuple[float, ...]
    if sign:
        ends = float(middle) - float(half), float(middle) + float(half)
        # As both are rounded alike, an interval that has 0 in it has 0 in it as shown.
        assert ends[0] <= 0.0 <= ends[1] or not low <= 0.0 <= high
    elif low < high:
        left, right = middle.partition(" (")[2].rstrip(")").split(" to ")
        ends = float(left), float(right)
        assert ends[0] <= 0.0 <= ends[1] or not low <= 0.0 <= high
    else:
        return
    assert ends == pytest.approx((low, high), abs=0.001 + 1e-9)
