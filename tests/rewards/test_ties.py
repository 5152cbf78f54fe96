"""Laws of tie statistics: against brute force, invariances, the anchor rule, what counts."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import betaln

from tokengym.rewards.control import FLOOR, FlatFloor, floor_return
from tokengym.rewards.estimates import Estimate
from tokengym.rewards.ties import TieCounts, tie_counts, tie_statistics

grid = st.integers(0, 6).map(lambda n: n / 8)
groups = st.lists(st.lists(grid, max_size=6), max_size=6)
floors = st.integers(0, 7).map(lambda n: n / 8)


def pairs_of(group: list[float]) -> list[tuple[float, float]]:
    return list(combinations(group, 2))


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits) if hits else 0.0


def rates(counts: TieCounts, *sizes: int) -> dict[str, float]:
    """Every rate by name, without its interval."""
    found = counts.intervals(np.random.default_rng(0), sizes=sizes, resamples=1)
    return {name: interval.value for name, interval in found.items()}


def everything(counts: TieCounts) -> dict[str, float]:
    return {**counts.statistics(), **rates(counts, 3)}


def buckets(rewards: list[float], eps: float) -> list[list[float]]:
    """The anchor rule, one reward at a time."""
    found: list[list[float]] = []
    for reward in sorted(rewards):
        if found and reward - found[-1][0] <= eps:
            found[-1].append(reward)
        else:
            found.append([reward])
    return found


@given(groups)
def test_it_agrees_with_a_count_of_all_pairs(groups: list[list[float]]) -> None:
    eligible = [group for group in groups if len(group) > 1]
    found = tie_statistics(groups)
    assert found["reward_tie_eligible_groups"] == len(eligible)
    assert found["reward_tie_group_rate"] == share([len(set(g)) < len(g) for g in eligible])
    assert found["reward_uniform_group_rate"] == share([len(set(g)) == 1 for g in eligible])
    assert found["reward_tie_pair_rate"] == share(
        [a == b for g in eligible for a, b in pairs_of(g)]
    )


@given(st.lists(st.lists(st.floats(-10, 10), max_size=12), max_size=4), st.floats(0, 2))
def test_it_agrees_with_the_anchor_rule_reward_by_reward(
    groups: list[list[float]], eps: float
) -> None:
    eligible = [buckets(group, eps) for group in groups if len(group) > 1]
    tied = sum(len(bucket) * (len(bucket) - 1) // 2 for found in eligible for bucket in found)
    counts = tie_counts(groups, eps)
    assert counts.distinct_N.tolist() == [len(found) for found in eligible]
    assert counts.rank_GN.sum() == tied
    sizes = [[len(bucket) for bucket in found] for found in eligible]
    effective = [sum(s) ** 2 / sum(n * n for n in s) for s in sizes]
    assert rates(counts)["effective_group_size"] == pytest.approx(
        sum(effective) / len(effective) if effective else 0.0
    )


@given(groups, floors)
def test_ties_split_by_the_floor(groups: list[list[float]], floor: float) -> None:
    eligible = [group for group in groups if len(group) > 1]
    pairs = [pair for group in eligible for pair in pairs_of(group)]
    low = [a == b for a, b in pairs if a < floor and b < floor]
    high = [a == b for a, b in pairs if a >= floor and b >= floor]
    found = rates(tie_counts(groups, floor=floor))
    assert found["floor_mass"] == share([reward < floor for group in eligible for reward in group])
    assert found["floor_tie_pair_rate"] == share(low)
    assert found["interior_tie_pair_rate"] == share(high)
    assert found["floor_tie_share"] == share([a < floor for a, b in pairs if a == b])


@given(groups, st.integers(2, 6))
def test_the_zero_advantage_chance_counts_tied_choices(
    groups: list[list[float]], size: int
) -> None:
    shares = [
        share([len(set(chosen)) == 1 for chosen in combinations(group, size)])
        for group in groups
        if len(group) >= size
    ]
    expected = sum(shares) / len(shares) if shares else 0.0
    assert rates(tie_counts(groups), size)[f"zero_advantage_probability_{size}"] == pytest.approx(
        expected
    )


@given(st.integers(0, 6).flatmap(lambda n: st.lists(st.lists(grid, min_size=n, max_size=n))))
def test_an_array_of_groups_counts_like_their_list(groups: list[list[float]]) -> None:
    array = np.array(groups, np.float64).reshape(len(groups), len(groups[0]) if groups else 0)
    before = array.copy()
    assert tie_statistics(array) == tie_statistics(groups)
    assert (array == before).all()


@given(st.lists(st.lists(st.tuples(grid, st.booleans()), max_size=6), max_size=6), st.booleans())
def test_truncated_rollouts_are_left_out_without_trace(
    groups: list[list[tuple[float, bool]]], as_numbers: bool
) -> None:
    lost = math.nan if as_numbers else 0.0
    rewards = [[lost if cut else reward for reward, cut in group] for group in groups]
    cut = [[cut for _, cut in group] for group in groups]
    kept = [[reward for reward, cut in group if not cut] for group in groups]
    assert tie_statistics(rewards, truncated=cut) == tie_statistics(kept)


def test_nothing_eligible_gives_zeros() -> None:
    for none in ([], [[], [0.5]]):
        counts = tie_counts(none, floor=1.0)
        assert set(everything(counts).values()) == {0}
        rng = np.random.default_rng(0)
        assert set(counts.intervals(rng, sizes=(2,)).values()) == {Estimate(0.0, 0.0, 0.0)}


def test_a_known_case() -> None:
    found = tie_statistics([[0, 0, 0, 0], [0, 0, 1, 2], [1, 2, 3, 4], [5]])
    assert found == {
        "reward_tie_eligible_groups": 3,
        "reward_tie_group_rate": 2 / 3,
        "reward_uniform_group_rate": 1 / 3,
        "reward_tie_pair_rate": 7 / 18,
        "reward_unique_fraction_mean": (1 / 4 + 3 / 4 + 1) / 3,
    }


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8, unique=True))
def test_a_flat_floor_ties_its_pairs_unlike_a_graded_one(depths: list[float]) -> None:
    graded = [floor_return(0.0, depth) for depth in depths]
    flat = FlatFloor(FLOOR, 0.0, "").flattened(np.array(graded)).tolist()
    on_flat = rates(tie_counts([flat], floor=FLOOR))
    on_graded = rates(tie_counts([graded], floor=FLOOR))
    assert on_flat["floor_mass"] == on_graded["floor_mass"] == 1.0
    assert on_flat["floor_tie_pair_rate"] == on_flat["floor_tie_share"] == 1.0
    assert on_graded["floor_tie_pair_rate"] == share([a == b for a, b in pairs_of(graded)])


def dead_groups(alpha: float, beta: float, size: int) -> float:
    """The chance that right-or-wrong rewards all tie where being right has a beta law."""
    all_right, all_wrong = (
        math.exp(betaln(one + size, other) - betaln(one, other))
        for one, other in ((alpha, beta), (beta, alpha))
    )
    return all_right + all_wrong


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (5.0, 1.0), (2.0, 8.0), (0.3, 0.3)])
def test_dead_groups_of_larger_sizes_are_predicted(alpha: float, beta: float) -> None:
    """Held out: groups of 8 are seen, those of 16 and 32 are known by the law alone."""
    rng = np.random.default_rng(0)
    missed, covered = {16: 0.0, 32: 0.0}, 0
    for _ in range(40):
        chances = rng.beta(alpha, beta, (150, 1))
        counts = tie_counts((rng.random((150, 8)) < chances).astype(float))
        for rate, size in zip(counts.dead_group_rates([16, 32], rng), missed, strict=True):
            truth = dead_groups(alpha, beta, size)
            missed[size] += (rate.value - truth) / 40
            covered += rate.low <= truth <= rate.high
    assert all(abs(bias) < 0.02 for bias in missed.values()), missed
    assert covered >= 0.88 * 80


@pytest.mark.nightly
@given(st.lists(st.lists(grid, min_size=4, max_size=7), min_size=1, max_size=6))
# The chances of all-tied pairs, triples and fours are here those of no beta law.
@example([[0, 0, 1, 0], [0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 0], [1, 3] * 3, [0, 1, 2, 3, 0]])
def test_predictions_fall_with_the_size_and_keep_their_bounds(groups: list[list[float]]) -> None:
    sizes = [2, 3, 4, 5, 8, 64]
    seen = min(map(len, groups))
    counts = tie_counts(groups)
    found = counts.dead_group_rates(sizes, np.random.default_rng(0), resamples=20)
    values = dict(zip(sizes, (rate.value for rate in found), strict=True))
    for size in sizes:
        if size <= seen:
            known = rates(counts, size)[f"zero_advantage_probability_{size}"]
            assert values[size] == pytest.approx(known)
    whole = rates(counts, seen)[f"zero_advantage_probability_{seen}"]
    for size in (size for size in sizes if size > seen):
        assert whole ** ((size - 1) / (seen - 1)) - 1e-6 <= values[size] <= whole + 1e-6
    assert values[64] <= values[8] + 1e-9


def test_pairs_say_nothing_of_larger_groups() -> None:
    for few, sizes in (([[0.0, 1.0]] * 9, [4]), ([], [2]), ([[0.0] * 4], [1, 2])):
        with pytest.raises(ValueError, match="cannot predict groups of"):
            tie_counts(few).dead_group_rates(sizes, np.random.default_rng(0))


def test_what_is_no_number_is_refused() -> None:
    for groups in ([[0.0, float("nan")]], np.array([[0.0, np.inf]])):
        with pytest.raises(ValueError, match="finite"):
            tie_statistics(groups)
    for eps in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="eps must be >= 0"):
            tie_statistics([[0.0, 1.0]], eps=eps)


def test_arguments_out_of_range_are_refused_by_value() -> None:
    counts, rng = tie_counts([[0.0, 1.0]]), np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least 2, got 1"):
        counts.intervals(rng, sizes=(1,))
    with pytest.raises(ValueError, match="level must be"):
        counts.intervals(rng, level=1.0)
    with pytest.raises(ValueError, match="resamples must be"):
        counts.intervals(rng, resamples=0)
    with pytest.raises(ValueError, match="shaped like groups"):
        tie_statistics([[0.0, 1.0]], truncated=[[True]])
