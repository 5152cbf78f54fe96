"""Laws of advantages: definitions, what each estimator makes of ties, cases others got wrong."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tokengym.rewards.advantages import (
    MINIMUM_SPREAD,
    by_turn,
    group_centred,
    group_standardised,
    informative_groups,
    leave_one_out,
    reinforce_plus_plus,
    remax,
    returns_to_go,
)
from tokengym.rewards.bounds import GRID
from tokengym.rewards.ties import tie_counts

Array = npt.NDArray[np.float64]

shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
dyadic = hnp.arrays(np.float64, shapes, elements=st.integers(-65536, 65536).map(lambda n: n / GRID))
few = hnp.arrays(np.float64, shapes, elements=st.integers(0, 3).map(lambda n: n / 4))
any_rewards = hnp.arrays(np.float64, shapes, elements=st.floats(-100, 100))


def masks(rewards: Array) -> st.SearchStrategy[npt.NDArray[np.bool_]]:
    return hnp.arrays(np.bool_, rewards.shape)


@given(dyadic)
def test_centred_rewards_sum_to_zero(rewards: Array) -> None:
    expected = np.array([[r - sum(row) / len(row) for r in row] for row in rewards.tolist()])
    found = group_centred(rewards)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.sum(axis=1) == pytest.approx(0.0, abs=1e-12)


@given(dyadic)
def test_leaving_one_out_compares_with_the_mean_of_the_others(rewards: Array) -> None:
    for row, found in zip(rewards.tolist(), leave_one_out(rewards), strict=True):
        for place, reward in enumerate(row):
            others = row[:place] + row[place + 1 :]
            baseline = sum(others) / len(others) if others else reward
            assert found[place] == pytest.approx(reward - baseline, abs=1e-12)


@given(dyadic)
def test_standardised_rewards_are_bounded_despite_ties(rewards: Array) -> None:
    found, size = group_standardised(rewards), rewards.shape[1]
    live = informative_groups(rewards)
    assert (np.abs(found) <= (size - 1) / math.sqrt(size) + 1e-9).all()
    if live.any():
        assert found[live].std(axis=1, ddof=1) == pytest.approx(1.0)


@given(few)
def test_informative_groups_are_not_uniform(rewards: Array) -> None:
    distinct = tie_counts(rewards).distinct_N
    expected = distinct > 1 if rewards.shape[1] > 1 else np.zeros(len(rewards), np.bool_)
    assert informative_groups(rewards).tolist() == expected.tolist()


@given(st.data())
def test_a_masked_group_is_estimated_like_the_rest_alone(data: st.DataObject) -> None:
    rewards = data.draw(dyadic)
    counted = data.draw(masks(rewards))
    for estimate in (group_centred, group_standardised, leave_one_out):
        found = estimate(rewards, counted)
        for row, kept, advantages in zip(rewards, counted, found, strict=True):
            alone = estimate(row[kept][None])[0]
            assert advantages[kept] == pytest.approx(alone, abs=1e-9)


# REINFORCE++

tokens_and_rewards = shapes.flatmap(
    lambda shape: st.tuples(
        hnp.arrays(np.float64, shape, elements=st.integers(0, 3).map(lambda n: n / 4)),
        hnp.arrays(np.int64, shape, elements=st.integers(0, 9)),
    )
)


@given(tokens_and_rewards)
def test_reinforce_plus_plus_standardises_what_every_token_gets(
    case: tuple[Array, npt.NDArray[np.int64]],
) -> None:
    rewards, tokens = case
    by_token = np.repeat(group_centred(rewards).ravel(), tokens.ravel())
    found = reinforce_plus_plus(rewards, tokens)
    if not by_token.size or not np.ptp(by_token):
        assert not found.any()
        return
    expected = (group_centred(rewards) - by_token.mean()) / by_token.std()
    live = informative_groups(rewards)
    assert found[live] == pytest.approx(expected[live], abs=1e-9)
    assert not found[~live].any()


@given(tokens_and_rewards, st.floats(0.01, 3.0))
def test_the_cap_holds_and_changes_nothing_below_it(
    case: tuple[Array, npt.NDArray[np.int64]], cap: float
) -> None:
    free, capped = reinforce_plus_plus(*case), reinforce_plus_plus(*case, cap=cap)
    assert (np.abs(capped) <= cap).all()
    assert (capped == free)[np.abs(free) <= cap].all()


@given(tokens_and_rewards, st.sampled_from([0.1, 0.3, 0.7, 0.95]), st.integers(1, 60))
def test_ties_up_to_rounding_act_like_ties(
    case: tuple[Array, npt.NDArray[np.int64]], value: float, count: int
) -> None:
    rewards, tokens = case
    size = rewards.shape[1]
    more = np.vstack([tokens, np.full((count, size), 7)])
    tied = np.vstack([rewards, np.zeros((count, size))])
    wobble = value + 1e-15 * np.arange(count * size).reshape(count, size)
    nearly = np.vstack([rewards, wobble])
    assert (reinforce_plus_plus(nearly, more) == reinforce_plus_plus(tied, more)).all()


@given(tokens_and_rewards, st.integers(1, 5))
def test_masked_ties_change_nothing_for_other_groups(
    case: tuple[Array, npt.NDArray[np.int64]], count: int
) -> None:
    rewards, tokens = case
    size = rewards.shape[1]
    live = np.repeat(informative_groups(rewards)[:, None], size, axis=1)
    padded = np.vstack([rewards, np.full((count, size), 0.3)])
    mask = np.repeat(informative_groups(padded)[:, None], size, axis=1)
    more = np.vstack([tokens, np.full((count, size), 5)])
    found = reinforce_plus_plus(padded, more, mask)
    assert found[: len(rewards)] == pytest.approx(reinforce_plus_plus(rewards, tokens, live))
    assert not found[len(rewards) :].any()


# ReMax


@given(dyadic, st.data())
def test_remax_is_the_reward_beyond_the_greedy_rollout(rewards: Array, data: st.DataObject) -> None:
    greedy = data.draw(hnp.arrays(np.float64, len(rewards), elements=st.floats(-1, 1)))
    assert (remax(rewards, greedy) == rewards - greedy[:, None]).all()


def test_remax_learns_from_uniform_groups_unless_the_greedy_ties() -> None:
    rewards = np.array([[0.25, 0.25], [0.5, 0.5]])
    assert remax(rewards, [0.0, 0.5]).tolist() == [[0.25, 0.25], [0.0, 0.0]]
    assert remax([[1.0, math.nan]], [0.5], [[True, False]]).tolist() == [[0.5, 0.0]]


# Credit by turn

turns = hnp.arrays(
    np.float64,
    hnp.array_shapes(min_dims=3, max_dims=3, max_side=4),
    elements=st.integers(-8, 8).map(lambda n: n / 8),
)


@given(turns, st.sampled_from([0.0, 0.5, 1.0]))
def test_returns_to_go_are_discounted_sums(rewards: Array, discount: float) -> None:
    found = returns_to_go(rewards, discount)
    for turn in range(rewards.shape[2]):
        ahead = rewards[:, :, turn:]
        weights = discount ** np.arange(ahead.shape[2])
        assert found[:, :, turn] == pytest.approx((ahead * weights).sum(axis=2))


def turn_centred(rewards: Array, taken: npt.NDArray[np.bool_] | None = None) -> Array:
    """Credit by turn as the trainer computes it."""
    counted = np.ones(rewards.shape, np.bool_) if taken is None else taken
    return by_turn(group_centred, returns_to_go(np.where(counted, rewards, 0.0)), counted)


@given(st.data())
def test_a_turn_is_compared_among_the_rollouts_that_took_it(data: st.DataObject) -> None:
    rewards = data.draw(turns)
    length = data.draw(
        hnp.arrays(np.int64, rewards.shape[:2], elements=st.integers(0, rewards.shape[2]))
    )
    taken = np.arange(rewards.shape[2]) < length[:, :, None]
    found = turn_centred(np.where(taken, rewards, math.nan), taken)
    returns = returns_to_go(np.where(taken, rewards, 0.0))
    for turn in range(rewards.shape[2]):
        expected = group_centred(returns[:, :, turn], taken[:, :, turn])
        assert (found[:, :, turn] == expected).all()
    assert not found[taken.sum(axis=1)[:, None].repeat(rewards.shape[1], 1) < 2].any()


# Cases that other trainers got wrong


def test_a_lone_loser_is_no_spike_under_rounding() -> None:
    """NeMo-RL 4158: seven rewards of 0.95 had a deviation of 5e-4 in float32, and 0 got -2075."""
    rewards = np.array([[0.0, *[np.float32(0.95)] * 7]])
    assert leave_one_out(rewards)[0, 0] == pytest.approx(-0.95)
    assert group_standardised(rewards)[0, 0] == pytest.approx(-7 / math.sqrt(8))


def test_a_group_whose_only_variance_is_masked_is_uninformative() -> None:
    """NeMo-RL 4160: such groups survived filtering and were trained on as noise."""
    assert not informative_groups([[0.0, 1.0, 0.0]], [[True, False, True]]).any()
    assert not informative_groups([[0.0, 1.0]], [[True, False]]).any()


def test_small_differences_are_told_from_large_offsets() -> None:
    """Verl 6348: E[x²] - E[x]² shrank the advantages of close rewards a hundredfold."""
    rewards = [[1.0, 1.00001], [2.0, 2.00001], [1e4, 1e4 + 1e-5]]
    found = group_standardised(rewards)
    assert found == pytest.approx(np.array([[-1, 1]] * 3) / math.sqrt(2), rel=1e-6)


def test_the_default_spread_exceeds_rounding() -> None:
    assert np.finfo(np.float32).eps < MINIMUM_SPREAD < 1 / GRID


# Mistakes


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: group_centred([1.0, 2.0]), "two axes"),
        (lambda: group_centred([[1.0, math.nan]]), "finite"),
        (lambda: group_centred([[1.0, 2.0]], [[True]]), "counted_NG must be flags of shape"),
        (lambda: group_centred([[1.0, 2.0]], [[1, 0]]), "dtype int64"),
        (lambda: group_centred([[1.0, 2.0]], minimum_spread=-1.0), "minimum_spread must be >= 0"),
        (lambda: reinforce_plus_plus([[1.0, 2.0]], [[1]]), "tokens_NG must have shape"),
        (lambda: reinforce_plus_plus([[1.0, 2.0]], [[1, -1]]), "tokens_NG must be finite"),
        (lambda: reinforce_plus_plus([[1.0, 2.0]], [[1, 1]], cap=0.0), "cap must be positive"),
        (lambda: remax([[1.0, 2.0]], [1.0, 2.0]), "greedy_N must be 1 finite"),
        (lambda: returns_to_go([[1.0]]), "three axes"),
        (lambda: returns_to_go([[[1.0]]], 1.5), "discount must be in"),
        (
            lambda: by_turn(group_centred, np.ones((1, 1, 1)), np.ones((1, 1, 2), np.bool_)),
            "taken_NGT must have shape",
        ),
    ],
)
def test_a_mistake_is_named_with_its_value(call: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
