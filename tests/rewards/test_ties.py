"""Laws of tie statistics: against brute force, invariances, the anchor rule, what counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.ties import bucket_sizes, tie_statistics

grid = st.integers(0, 6).map(lambda n: n / 8)
groups = st.lists(st.lists(grid, max_size=6), max_size=6)


def brute_force(groups: list[list[float]], eps: float) -> tuple[int, int, int, int, int]:
    """Eligible, repeated, uniform, tied pairs, pairs - for rewards whose gaps exceed eps."""
    eligible = [group for group in groups if len(group) > 1]
    pairs = [(a, b) for g in eligible for i, a in enumerate(g) for b in g[i + 1 :]]
    return (
        len(eligible),
        sum(len(set(g)) < len(g) for g in eligible),
        sum(len(set(g)) == 1 for g in eligible),
        sum(abs(a - b) <= eps for a, b in pairs),
        len(pairs),
    )


@given(groups)
def test_it_agrees_with_a_count_of_all_pairs(groups: list[list[float]]) -> None:
    eligible, repeated, uniform, tied, pairs = brute_force(groups, 1e-6)
    found = tie_statistics(groups)
    assert found["reward_tie_eligible_groups"] == eligible
    assert found["reward_tie_group_rate"] == (repeated / eligible if eligible else 0)
    assert found["reward_uniform_group_rate"] == (uniform / eligible if eligible else 0)
    assert found["reward_tie_pair_rate"] == (tied / pairs if pairs else 0)


@given(groups, st.randoms())
def test_the_order_of_rewards_and_groups_does_not_matter(groups: list[list[float]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = [random.sample(group, len(group)) for group in groups]
    random.shuffle(shuffled)
    ours, theirs = tie_statistics(groups), tie_statistics(shuffled)
    assert ours.pop("reward_unique_fraction_mean") == pytest.approx(  # type: ignore[misc]
        theirs.pop("reward_unique_fraction_mean")  # type: ignore[misc]
    )
    assert ours == theirs


@given(groups, st.sampled_from([0.5, 2.0, 64.0]), st.integers(-8, 8))
def test_scaling_rewards_and_eps_together_changes_nothing(
    groups: list[list[float]], scale: float, shift: int
) -> None:
    moved = [[scale * reward + shift for reward in group] for group in groups]
    assert tie_statistics(groups, 2**-20) == tie_statistics(moved, scale * 2**-20)


@given(st.lists(st.floats(-10, 10), max_size=20), st.floats(0, 2))
def test_buckets_hold_every_reward_once_and_no_bucket_is_wider_than_eps(
    rewards: list[float], eps: float
) -> None:
    sizes = bucket_sizes(rewards, eps)
    assert sum(sizes) == len(rewards)
    ordered = sorted(rewards)
    for end in np.cumsum(sizes):
        size = sizes[int(np.flatnonzero(np.cumsum(sizes) == end)[0])]
        assert ordered[end - 1] - ordered[end - size] <= eps


def test_buckets_do_not_chain() -> None:
    assert bucket_sizes([0.0, 0.8, 1.6], eps=1.0) == [2, 1]


def test_nothing_eligible_gives_zeros() -> None:
    assert set(tie_statistics([[], [0.5]]).values()) == {0}


def test_a_known_case() -> None:
    found = tie_statistics([[0, 0, 0, 0], [0, 0, 1, 2], [1, 2, 3, 4], [5]])
    assert found == {
        "reward_tie_eligible_groups": 3,
        "reward_tie_group_rate": 2 / 3,
        "reward_uniform_group_rate": 1 / 3,
        "reward_tie_pair_rate": 7 / 18,
        "reward_unique_fraction_mean": (1 / 4 + 3 / 4 + 1) / 3,
    }


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        tie_statistics([[0.0, float("nan")]])
    with pytest.raises(ValueError, match="eps must be >= 0"):
        tie_statistics([[0.0, 1.0]], eps=-1)
