"""Laws of registered estimators: each entry of the registry states which it obeys."""

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tokengym.rewards.advantages import informative_groups
from tokengym.rewards.bounds import GRID
from tokengym.rewards.estimators import ESTIMATORS, Batch, Estimator, group_spreads

Array = npt.NDArray[np.float64]
PAGE = Path(__file__).parents[2] / "docs" / "training.md"

shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6)
few = hnp.arrays(np.float64, shapes, elements=st.integers(0, 3).map(lambda n: n / 4))
any_rewards = hnp.arrays(np.float64, shapes, elements=st.floats(-100, 100))
every = pytest.mark.parametrize("name", ESTIMATORS)


def batch(rewards: Array, counted: npt.NDArray[np.bool_] | None = None, spread: float = 0) -> Batch:
    """A batch of these rewards; tokens differ from group to group."""
    tokens = np.arange(1.0, 1.0 + rewards.size).reshape(rewards.shape)
    counted = np.ones(rewards.shape, np.bool_) if counted is None else counted
    return Batch(rewards, counted, tokens, spread)


def of(name: str) -> Estimator:
    return ESTIMATORS[name]


@every
@given(value=st.integers(-65536, 65536), groups=st.integers(1, 5), size=st.integers(1, 40))
def test_tied_groups_get_exactly_zero(name: str, value: int, groups: int, size: int) -> None:
    found = of(name).advantages(batch(np.full((groups, size), value / GRID)))
    assert not found.any()


@every
@given(rewards=any_rewards, spread=st.floats(0, 50))
def test_a_spread_of_at_most_the_minimum_counts_as_none(
    name: str, rewards: Array, spread: float
) -> None:
    asked = batch(rewards, spread=spread)
    found = of(name).advantages(asked)
    noise = group_spreads(asked) <= spread
    assert np.isfinite(found).all()
    assert not found[noise].any()
    assert (informative_groups(rewards, minimum_spread=spread) == ~noise).all()


@every
@given(few)
def test_advantages_of_a_group_sum_to_zero_as_declared(name: str, rewards: Array) -> None:
    sums = of(name).advantages(batch(rewards)).sum(axis=1)
    if of(name).sums_to_zero:
        assert sums == pytest.approx(0.0, abs=1e-9)


@every
def test_an_estimator_declared_not_to_sum_to_zero_does_not(name: str) -> None:
    sums = of(name).advantages(batch(np.array([[0.0, 1.0, 0.25], [0.5, 0.0, 0.0]]))).sum(axis=1)
    assert np.allclose(sums, 0.0) == of(name).sums_to_zero


@every
@given(rewards=few, scale=st.sampled_from([0.5, 2.0, 8.0]), shift=st.integers(-4, 4))
def test_scales_and_shifts_act_as_declared(
    name: str, rewards: Array, scale: float, shift: int
) -> None:
    plain = batch(rewards)
    moved = plain._replace(values_NG=scale * rewards + shift)
    expected = scale ** of(name).degree * of(name).advantages(plain)
    assert of(name).advantages(moved) == pytest.approx(expected, abs=1e-9)


@every
@given(data=st.data())
def test_rollouts_that_do_not_count_have_no_vote(name: str, data: st.DataObject) -> None:
    rewards = data.draw(few)
    counted = data.draw(hnp.arrays(np.bool_, rewards.shape))
    found = of(name).advantages(batch(np.where(counted, rewards, math.nan), counted))
    other = of(name).advantages(batch(np.where(counted, rewards, 1e9), counted))
    assert (found == other).all()
    assert not found[~counted].any()


@every
@given(data=st.data())
def test_a_group_is_estimated_alone_as_declared(name: str, data: st.DataObject) -> None:
    rewards = data.draw(few)
    whole = batch(rewards)
    found = of(name).advantages(whole)
    for n in range(len(rewards)):
        alone = batch(rewards[n : n + 1])._replace(tokens_NG=whole.tokens_NG[n : n + 1])
        if of(name).own_group:
            assert of(name).advantages(alone)[0] == pytest.approx(found[n], abs=1e-9)


@every
def test_an_estimator_declared_to_see_the_batch_does(name: str) -> None:
    groups = batch(np.array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.25]]))
    wider = groups._replace(values_NG=groups.values_NG * np.array([[1.0], [3.0]]))
    same = np.allclose(of(name).advantages(groups)[0], of(name).advantages(wider)[0])
    assert same == of(name).own_group


@every
def test_unbiased_estimators_expect_the_true_gradient(name: str) -> None:
    """All groups of four of a softmax over three replies, one of them rare with a high reward."""
    chances, payoffs, size = np.array([0.7, 0.25, 0.05]), np.array([0.1, 0.2, 5.0]), 4
    members = np.stack(np.meshgrid(*[range(3)] * size), axis=-1).reshape(-1, size)
    weights = chances[members].prod(axis=1)
    scores = np.eye(3)[members] - chances
    update = np.zeros(3)
    for group, weight, score in zip(payoffs[members], weights, scores, strict=True):
        asked = Batch(group[None], np.ones((1, size), np.bool_), np.ones((1, size)))
        update += weight * of(name).advantages(asked)[0] @ score
    true = chances * (payoffs - chances @ payoffs)
    cosine = update @ true / np.linalg.norm(update) / np.linalg.norm(true)
    assert (cosine > 1 - 1e-9) == of(name).unbiased


def test_the_page_on_training_lists_every_estimator() -> None:
    page = PAGE.read_text()
    for name, estimator in ESTIMATORS.items():
        cells = (f"`{name}`", estimator.source, estimator.title, estimator.caution)
        assert f"| {' | '.join(filter(None, cells))} |" in page
