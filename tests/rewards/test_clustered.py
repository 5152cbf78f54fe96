"""Laws of intervals over Tasks: those of the textbooks, and of shares that are small."""

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tokengym.rewards.clustered import (
    clustered_mean,
    clustered_share,
    holm,
    mean_over_clusters,
    paired_comparison,
    pass_at_k,
    resampled_statistic,
)

TASKS, ROLLOUTS = 64, 4


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


def test_a_share_never_seen_may_be_a_few_percent() -> None:
    assert clustered_share(np.zeros((64, 4))).high == pytest.approx(1 - 0.025 ** (1 / 64))
    one = np.zeros((40, 1))
    one[0] = 1.0
    exact = stats.binomtest(1, 40).proportion_ci(method="exact")
    assert clustered_share(one)[1:3] == pytest.approx((exact.low, exact.high))


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
def test_pass_at_k_averages_all_choices_of_k(k: int, successes: int) -> None:
    row = [1.0] * successes + [0.0] * (6 - successes)
    by_hand = np.mean([max(chosen) for chosen in itertools.combinations(row, k)])
    assert pass_at_k([row, row], k).value == pytest.approx(by_hand)
    with pytest.raises(ValueError, match="from 1 to the 6"):
        pass_at_k([row], 7)


# Two Tasks agree within, one does not; by hand the Tasks' means are 1/4, 3/4 and 1/2.
THREE_BY_FOUR = [[0.25, 0.25, 0.25, 0.25], [1.0, 0.5, 1.0, 0.5], [0.0, 1.0, 0.5, 0.5]]


def test_a_mean_over_tasks_has_students_interval() -> None:
    found = clustered_mean(THREE_BY_FOUR)
    half = 4.302652729911275 * 0.25 / math.sqrt(3)  # t of 2 degrees of freedom, of 3 Tasks
    assert found == pytest.approx((0.5, 0.5 - half, 0.5 + half, 3))
    sample = stats.ttest_1samp([0.25, 0.75, 0.5], 0.0).confidence_interval(0.95)
    assert found[1:3] == pytest.approx(sample)


def test_a_mean_over_clusters_of_any_sizes_is_the_textbooks() -> None:
    """Sums of residuals by cluster are squared, times n / (n - 1), over the number of values."""
    values, cluster = [1.0, 2.0, 6.0, 0.0, 1.0, 2.0], [7, 7, 2, 0, 0, 0]
    # About the mean of 2 the clusters' residuals sum to -1, 4 and -3.
    error = math.sqrt(3 / 2 * (1 + 16 + 9)) / 6
    half = float(stats.t.ppf(0.975, 2)) * error
    assert mean_over_clusters(values, cluster) == pytest.approx((2.0, 2.0 - half, 2.0 + half, 3))


def test_clusters_of_one_size_have_the_interval_over_their_means() -> None:
    by_cluster = mean_over_clusters(np.ravel(THREE_BY_FOUR), np.repeat([0, 1, 2], 4))
    assert by_cluster == pytest.approx(clustered_mean(THREE_BY_FOUR))
    assert mean_over_clusters([1.0, 2.0], [0, 0]) == (1.5, 1.5, 1.5, 1)


def test_a_share_is_clustered_and_never_leaves_its_range() -> None:
    shares = np.repeat([0.0, 0.25, 0.5, 0.75, 1.0], 4)  # 10 of 20 Tasks' worth
    rows = [[1.0] * round(4 * share) + [0.0] * (4 - round(4 * share)) for share in shares]
    half = float(stats.t.ppf(0.975, 19)) * float(stats.sem(shares))
    assert clustered_share(rows) == pytest.approx((0.5, 0.5 - half, 0.5 + half, 20))
    # Five Tasks of six: the normal interval would need as many of the rarer outcome.
    exact = stats.binomtest(5, 6).proportion_ci(method="exact")
    assert clustered_share([[1.0]] * 5 + [[0.0]]) == pytest.approx((5 / 6, *exact, 6))
    wide = clustered_share([[1.0]] * 5 + [[0.0]] * 5)
    assert wide == pytest.approx((0.5, 0.5 - wide.high + 0.5, wide.high, 10))
    assert wide.high == pytest.approx(0.5 + stats.t.ppf(0.975, 9) * stats.sem([1] * 5 + [0] * 5))


def test_a_resample_draws_as_many_tasks_uniformly() -> None:
    drawn: list[npt.NDArray[np.float64]] = []
    stated: list[npt.NDArray[np.float64]] = []

    def weighted(sums: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        drawn.append(sums)
        stated.append(sums @ 2.0 ** np.arange(8))
        return stated[-1]

    found = resampled_statistic(np.eye(8), weighted, np.random.default_rng(5))
    of_all, (times_RT, values_R) = drawn[0], (drawn[1], stated[1])
    assert of_all.tolist() == [[1.0] * 8]
    assert times_RT.sum(axis=1).tolist() == [8.0] * 1000
    # Each Task is drawn once on average, and as often as independent draws are.
    assert times_RT.mean(axis=0) == pytest.approx([1.0] * 8, abs=0.15)
    assert times_RT.var(axis=0) == pytest.approx([7 / 8] * 8, abs=0.2)
    low, high = np.quantile(values_R, (0.025, 0.975))
    assert found == (255.0, low, high, 8)


def test_a_comparison_is_the_paired_t_test_of_task_means() -> None:
    first = THREE_BY_FOUR
    second = [[0.5, 0.25], [0.5, 0.125], [0.25, 0.5]]  # the numbers of rollouts may differ
    found = paired_comparison(first, second)
    test = stats.ttest_rel([0.25, 0.75, 0.5], [0.375, 0.3125, 0.375])
    interval = test.confidence_interval(0.95)
    mean = (-0.125 + 0.4375 + 0.125) / 3
    assert found.difference == pytest.approx((mean, interval.low, interval.high, 3))
    assert found.p_value == pytest.approx(test.pvalue)
    error = mean / test.statistic
    assert found.detectable == pytest.approx((stats.t.ppf(0.975, 2) + stats.t.ppf(0.8, 2)) * error)
    assert paired_comparison([[1.0], [1.0]], [[0.5], [0.5]])[1:] == (0.0, 0.0)


def test_pass_at_k_is_clustered_by_task() -> None:
    """Of 4 rollouts, 0 to 4 successes; a pair of them misses all with C(4 - c, 2) / 6."""
    rows = [[1.0] * n + [0.0] * (4 - n) for n in range(5)] * 4
    chances = [0.0, 3 / 6, 5 / 6, 1.0, 1.0] * 4
    half = float(stats.t.ppf(0.975, 19)) * float(stats.sem(chances))
    mean = float(np.mean(chances))
    assert pass_at_k(rows, 2) == pytest.approx((mean, mean - half, mean + half, 20))
