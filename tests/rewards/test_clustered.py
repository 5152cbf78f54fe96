"""Laws of intervals over Tasks: they cover as often as they say, pairs find what others miss."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from tokengym.rewards.clustered import (
    clustered_mean,
    clustered_share,
    holm,
    paired_comparison,
    pass_at_k,
)

TASKS, ROLLOUTS, TRIALS = 64, 4, 4000


def returns(rng: np.random.Generator, gain: float = 0.0) -> npt.NDArray[np.float64]:
    """Returns in [0, 1] of many experiments: Tasks differ a lot, rollouts of one a little."""
    hard_RT1 = rng.beta(2.0, 3.0, size=(TRIALS, TASKS, 1))
    noise_RTK = rng.normal(0.0, 0.1, size=(TRIALS, TASKS, ROLLOUTS))
    return hard_RT1 + noise_RTK + gain


def coverage(values_RTK: npt.NDArray[np.float64], truth: float) -> float:
    """Share of experiments whose interval holds the truth."""
    found = [clustered_mean(values_TK) for values_TK in values_RTK]
    return sum(one.low <= truth <= one.high for one in found) / len(found)


def test_intervals_of_64_tasks_of_4_rollouts_cover_as_often_as_they_say() -> None:
    assert 0.94 <= coverage(returns(np.random.default_rng(0)), 2.0 / 5.0) <= 0.96


def test_intervals_over_rollouts_as_if_independent_would_not() -> None:
    flat_R1N = returns(np.random.default_rng(0)).reshape(TRIALS, -1, 1)
    assert coverage(flat_R1N, 2.0 / 5.0) < 0.75


@pytest.mark.parametrize("share", [0.0, 0.003, 0.02, 0.1, 0.5, 0.99])
def test_intervals_of_shares_cover_small_ones_too(share: float) -> None:
    rng = np.random.default_rng(1)
    # Rollouts of a Task mostly agree.
    alike_RT1 = rng.random((600, TASKS, 1)) < share
    own_RTK = rng.random((600, TASKS, ROLLOUTS)) < share
    happened = np.where(rng.random((600, TASKS, 1)) < 0.7, alike_RT1, own_RTK)
    found = [clustered_share(one) for one in happened]
    assert sum(one.low <= share <= one.high for one in found) / len(found) >= 0.93
    assert all(0.0 <= one.low <= one.value <= one.high <= 1.0 for one in found)


def test_a_share_that_never_happened_may_still_be_a_few_per_cent() -> None:
    assert clustered_share(np.zeros((64, 4))).high == pytest.approx(1 - 0.025 ** (1 / 64))
    one = np.zeros((40, 1))
    one[0] = 1.0
    exact = stats.binomtest(1, 40).proportion_ci(method="exact")
    assert clustered_share(one)[1:3] == pytest.approx((exact.low, exact.high))


def test_a_paired_comparison_finds_two_hundredths_where_independent_intervals_do_not() -> None:
    rng = np.random.default_rng(2)
    paired = independent = 0
    for _ in range(200):
        hard_T1 = rng.beta(2.0, 3.0, size=(TASKS, 1))
        first = hard_T1 + 0.02 + rng.normal(0.0, 0.05, size=(TASKS, ROLLOUTS))
        second = hard_T1 + rng.normal(0.0, 0.05, size=(TASKS, ROLLOUTS))
        found = paired_comparison(first, second)
        paired += found.difference.low > 0.0
        independent += clustered_mean(first).low > clustered_mean(second).high
        assert found.p_value < 0.05 or found.difference.low <= 0.0
        assert found.detectable < 0.02
    assert paired >= 190
    assert independent == 0


def test_the_smallest_difference_is_found_in_four_of_five_cases() -> None:
    rng = np.random.default_rng(3)
    error = 0.3 / math.sqrt(TASKS * ROLLOUTS)
    freedom = TASKS - 1
    true = (special.stdtrit(freedom, 0.975) + special.stdtrit(freedom, 0.8)) * error * math.sqrt(2)
    pairs = rng.normal(0.0, 0.3, size=(2, 2000, TASKS, ROLLOUTS))
    found = [paired_comparison(a + true, b) for a, b in zip(*pairs, strict=True)]
    assert np.mean([one.detectable for one in found]) == pytest.approx(true, rel=0.02)
    assert np.mean([one.p_value < 0.05 for one in found]) == pytest.approx(0.8, abs=0.03)


def test_equal_policies_do_not_differ() -> None:
    same = np.random.default_rng(4).random((8, 2))
    found = paired_comparison(same, same)
    assert (found.difference.value, found.p_value, found.detectable) == (0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="got 8 and 7"):
        paired_comparison(same, same[1:])
    with pytest.raises(ValueError, match="Tasks, rollouts"):
        clustered_mean(same[0])


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=8))
def test_corrected_p_values_keep_their_order_and_never_shrink(given_p: list[float]) -> None:
    corrected = holm(given_p)
    assert all(low <= high <= 1.0 for low, high in zip(given_p, corrected, strict=True))
    for (a, left), (b, right) in itertools.combinations(zip(given_p, corrected, strict=True), 2):
        assert a >= b or left <= right
    assert min(corrected) == min(1.0, min(given_p) * len(given_p))


def test_holm_is_the_textbooks() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.integers(1, 5), st.integers(0, 6))
def test_pass_at_k_is_the_mean_over_all_choices_of_k(k: int, successes: int) -> None:
    row = [1.0] * successes + [0.0] * (6 - successes)
    by_hand = np.mean([max(chosen) for chosen in itertools.combinations(row, k)])
    assert pass_at_k([row, row], k).value == pytest.approx(by_hand)
    with pytest.raises(ValueError, match="from 1 to the 6"):
        pass_at_k([row], 7)
