"""Intervals of tie statistics are exact, cover the truth, and count the groups of a Task once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from tokengym.rewards.estimates import Estimate, share_estimate
from tokengym.rewards.ties import TieCounts, tie_counts


@given(st.integers(0, 10_000))
def test_an_interval_holds_its_statistic_and_follows_its_seed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = tie_counts(rng.integers(0, 4, (40, 4)) / 8, floor=0.25)
    found = counts.intervals(np.random.default_rng(seed), sizes=(2, 3))
    assert found == counts.intervals(np.random.default_rng(seed), sizes=(2, 3))
    statistics = counts.statistics()
    for name, interval in found.items():
        assert interval.value == statistics.get(name, interval.value)
        assert interval.low <= interval.value <= interval.high


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    truth, rng, covered = 0.25, np.random.default_rng(0), 0
    for _ in range(200):
        groups = rng.integers(0, 4, (60, 4)) / 8
        interval = tie_counts(groups).intervals(rng, resamples=200)["reward_tie_pair_rate"]
        covered += interval.low <= truth <= interval.high
    assert 0.88 <= covered / 200 <= 0.99


def test_intervals_of_few_dead_groups_cover_the_truth() -> None:
    """At 48 groups, a rate that resampling shows as 0 or hardly ever."""
    truth, rng = 0.02, np.random.default_rng(0)
    for size in (4, 16):
        covered = 0
        for _ in range(100):
            groups = rng.random((48, 16))
            groups[rng.random(48) < truth] = 0.0
            found = tie_counts(groups).intervals(rng, sizes=(size,), resamples=1)
            interval = found[f"zero_advantage_probability_{size}"]
            covered += interval.low <= truth <= interval.high
        assert covered >= 94


def test_few_groups_do_not_prove_that_none_die() -> None:
    counts = tie_counts(np.random.default_rng(0).random((48, 16)))
    for name, rate in counts.intervals(np.random.default_rng(0)).items():
        if name.endswith(("group_rate", "pair_rate")) and "floor" not in name:
            assert rate.value == 0.0
            assert rate.high == pytest.approx(1 - 0.025 ** (1 / 48))


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_an_interval_is_the_percentiles_of_resampled_groups(level: float) -> None:
    """Of 40 groups of 4, 20 have one tied pair of 6: of a resample, Binomial(40, 1/2) of them."""
    groups = [[0.0, 0.0, 1.0, 2.0], [0.0, 1.0, 2.0, 3.0]] * 20
    rng = np.random.default_rng(6)
    found = tie_counts(groups).intervals(rng, level=level, resamples=20_000)
    tail = (1.0 - level) / 2.0
    low, high = (float(binom.ppf(p, 40, 0.5)) for p in (tail, 1.0 - tail))
    assert found["reward_tie_pair_rate"][:3] == pytest.approx((20 / 240, low / 240, high / 240))
    # One of four distinct rewards is lost in such a group; its effective size is 16 / 6.
    lost = [1.0 - n / 40 / 4 for n in (high, low)]
    assert found["reward_unique_fraction_mean"][:3] == pytest.approx((7 / 8, *lost))
    sizes = [4.0 - n / 40 * (4.0 - 16 / 6) for n in (high, low)]
    assert found["effective_group_size"][:3] == pytest.approx(((4 + 16 / 6) / 2, *sizes))


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_a_share_of_groups_has_the_exact_interval(level: float) -> None:
    """Of 12 groups with two rewards or more, 5 have a tie, 3 are uniform."""
    groups = [[0.0, 0.0]] * 3 + [[0.0, 0.0, 1.0]] * 2 + [[0.0, 1.0]] * 7 + [[0.0]]
    found = tie_counts(groups).intervals(np.random.default_rng(0), sizes=(3,), level=level)
    for name, count, total in (
        ("reward_tie_group_rate", 5, 12),
        ("reward_uniform_group_rate", 3, 12),
        ("zero_advantage_probability_3", 0, 2),
    ):
        exact = binomtest(count, total).proportion_ci(level)
        assert found[name][:3] == pytest.approx((count / total, exact.low, exact.high))
    # Too few groups differ to resample: a rate of 5 pairs in 3 + 2 * 3 + 7 counts as its share, of
    # as many equal groups as these of 1 and 3 pairs are worth by Kish's rule.
    rate, worth = found["reward_tie_pair_rate"], 16**2 / (3 + 2 * 9 + 7)
    assert rate.value == 5 / 16
    assert rate[1:3] == pytest.approx(share_estimate(worth * 5 / 16, worth, level)[1:3])


def test_groups_of_one_task_count_once() -> None:
    """Copies of a group in its cluster change no interval; as groups of their own they would."""
    rng = np.random.default_rng(0)
    once = rng.integers(0, 3, (30, 4)).tolist()
    copied = [group for group in once for _ in range(5)]
    of_task = [number for number in range(30) for _ in range(5)]

    def found(counts: TieCounts) -> list[Estimate]:
        known = counts.intervals(np.random.default_rng(1), sizes=(3,))
        predicted = counts.dead_group_rates([3, 8], np.random.default_rng(1))
        return [*known.values(), *predicted]

    first, again = found(tie_counts(once)), found(tie_counts(copied, clusters=of_task))
    assert [pytest.approx(tuple(rate)) for rate in first] == [tuple(rate) for rate in again]
    pairs = tie_counts(once).intervals(np.random.default_rng(1))["reward_tie_pair_rate"]
    apart = tie_counts(copied).intervals(np.random.default_rng(1))["reward_tie_pair_rate"]
    assert apart.half_width < 0.6 * pairs.half_width


def test_untied_groups_leave_the_effective_size_uncertain() -> None:
    rng, unseen = np.random.default_rng(0), 1.0 - 0.025 ** (1 / 30)
    for rewards, value in ((np.zeros((30, 8)), 1.0), (rng.random((30, 8)), 8.0)):
        found = tie_counts(rewards).intervals(rng)["effective_group_size"]
        ends = (1.0, 1.0 + 7.0 * unseen) if value == 1.0 else (8.0 - 7.0 * unseen, 8.0)
        assert found == pytest.approx((value, *ends, 30))
