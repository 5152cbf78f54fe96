"""Laws of intervals: those of shares cover at least as often as they say, at 0 and 1 too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from tokengym.rewards.estimates import share_estimate


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(pair: tuple[int, int]) -> None:
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


def test_what_is_no_share_is_refused_and_a_share_of_nothing_is_no_number() -> None:
    with pytest.raises(ValueError, match="between 0 and its total"):
        share_estimate(3, 2)
    assert np.isnan(share_estimate(0, 0).value)
