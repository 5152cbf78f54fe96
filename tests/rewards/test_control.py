"""Laws of the control scores: the map h, the two bands of the floor, the depth of a violation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.bounds import GRID, dyadic
from tokengym.rewards.control import (
    FLOOR,
    SAFE_RETURN,
    FlatFloor,
    affine_score,
    bounded_score,
    control_score,
    cost_score,
    floor_return,
    violation_depth,
)
from tokengym.rewards.form import FormAccount
from tokengym.testing import check_reward

scores = st.floats(-1e6, 1e6)
depths = st.floats(0.0, 1.0)


def test_h_lies_in_the_unit_interval() -> None:
    check_reward(bounded_score, scores, range=(0.0, 1.0))


@given(st.floats(-30.0, 1.0), st.floats(1e-6, 10.0))
def test_h_rises_strictly_up_to_the_optimum(score: float, step: float) -> None:
    assert bounded_score(score) < bounded_score(min(score + step, 1.0)) or score + step > 1.0


def test_h_is_a_quarter_at_the_reference_capped_at_one() -> None:
    assert bounded_score(0.0) == 0.25
    assert bounded_score(1.0) == bounded_score(7.0) == 1.0
    assert math.isclose(bounded_score(-1e-12), 0.25, abs_tol=1e-11)
    assert bounded_score(-1.0) == pytest.approx(0.25 / math.e)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(0.1, 100.0))
def test_the_score_does_not_depend_on_units(
    objective: float, reference: float, gap: float, unit: float
) -> None:
    score = control_score(objective, reference, reference + gap)
    in_other_units = control_score(unit * objective, unit * reference, unit * (reference + gap))
    assert math.isclose(score, in_other_units, rel_tol=1e-6, abs_tol=1e-6)
    assert control_score(reference, reference, reference + gap) == 0.0
    assert control_score(reference + gap, reference, reference + gap) == 1.0


@pytest.mark.parametrize(
    ("objective", "reference", "optimum"),
    [(0.0, 1.0, 1.0), (0.0, 2.0, 1.0), (math.nan, 0.0, 1.0), (0.0, -math.inf, 1.0)],
)
def test_a_score_without_meaning_is_refused(
    objective: float, reference: float, optimum: float
) -> None:
    with pytest.raises(ValueError, match="got"):
        control_score(objective, reference, optimum)


@given(scores, scores, depths)
def test_every_violation_scores_below_every_safe_episode(
    score: float, other: float, depth: float
) -> None:
    assert 0.0 <= floor_return(other, depth) < FLOOR <= floor_return(score, None) <= 1.0


@given(scores, scores, depths)
def test_the_share_of_form_keeps_violations_and_safe_episodes_apart(
    score: float, other: float, depth: float
) -> None:
    account = FormAccount(12)
    missed, safe = (
        dyadic(account.earned(value)) + dyadic(account.form)
        for value in (floor_return(other, depth), floor_return(score, None))
    )
    assert missed < SAFE_RETURN <= safe <= 1.0


def test_returns_on_the_grid_tie_on_flat_floors_alone() -> None:
    both = scores, st.one_of(st.none(), depths)
    floor = FlatFloor(FLOOR, 0.0, "violations earn 0")

    def flattened(score: float, depth: float | None) -> float:
        return float(floor.flattened(np.array(floor_return(score, depth))))

    graded, flat = (
        check_reward(reward, *both, range=(0.0, 1.0), dyadic=True, seed=0)
        for reward in (floor_return, flattened)
    )
    rate = "reward_tie_pair_rate"
    assert graded.ties[rate] < 0.5 * flat.ties[rate]  # type: ignore[literal-required]


@given(st.floats(-6.0, 1.0), st.floats(-6.0, 1.0))
def test_safe_episodes_are_graded_by_their_score(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if affine_score(high) - affine_score(low) > 4 / GRID:
        assert floor_return(low, None) < floor_return(high, None)


@given(depths, depths)
def test_violations_are_graded_by_their_depth(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high - low > 10 / GRID:
        assert floor_return(0.0, high) < floor_return(0.0, low)


@given(st.floats(-1.5, 1.5), st.floats(-1.5, 1.5), st.sampled_from([1.0, 1.5]))
def test_each_unit_of_cost_lowers_a_safe_episode_alike(
    one: float, other: float, most: float
) -> None:
    one, other = min(one, most), min(other, most)
    slope = 0.8 * 0.9 / (most + 1.5)
    gap = floor_return(one, None, most) - floor_return(other, None, most)
    assert gap == pytest.approx(slope * (one - other), abs=1 / GRID)
    assert floor_return(most, None, most) == floor_return(most + 9.0, None, most) == 1.0


@pytest.mark.parametrize("most", [1.0, 1.5])
def test_extreme_costs_never_go_below_the_floor(most: float) -> None:
    scores = np.linspace(-12.0, most, 500)
    values = [affine_score(score, most) for score in scores]
    slopes = np.diff(values) / np.diff(scores)
    assert (slopes > 0.0).all()
    assert (np.diff(slopes) > -1e-9).all()  # ever less steep below, and no jump at the seam
    assert affine_score(-1.5, most) == pytest.approx(0.1)
    assert 0.0 < affine_score(-12.0, most) < 1e-2


@given(st.floats(-5.0, 5.0), st.floats(-5.0, 5.0), st.floats(0.1, 10.0))
def test_a_costs_score_is_one_at_the_reference(cost: float, reference: float, scale: float) -> None:
    assert cost_score(reference, reference, scale) == 1.0
    score = cost_score(cost, reference, scale)
    assert score == pytest.approx(1.0 + (reference - cost) / scale)
    assert cost_score(cost + scale, reference, scale) == pytest.approx(score - 1.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan])
def test_a_scale_of_nothing_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="got cost"):
        cost_score(1.0, 1.0, scale)


@pytest.mark.parametrize("depth", [-0.1, 1.1, math.nan])
def test_a_depth_outside_the_unit_interval_is_refused(depth: float) -> None:
    with pytest.raises(ValueError, match="depth"):
        floor_return(0.0, depth)


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=30), st.floats(0.1, 10.0))
def test_the_depth_is_a_share_that_grows_with_all_costs(costs: list[float], largest: float) -> None:
    total = largest * len(costs)
    depth = violation_depth(costs, largest, total)
    assert 0.0 <= depth <= 1.0
    deeper = violation_depth([cost + 0.1 for cost in costs], largest, total)
    assert deeper > depth or deeper == 1.0


def test_violation_depths_run_from_zero_to_one() -> None:
    assert violation_depth([0.0, 0.0], 2.0, 3.0) == 0.0
    assert violation_depth([2.0, 1.0], 2.0, 3.0) == 1.0
    assert violation_depth([1.0, 0.0], 2.0, 4.0) == pytest.approx(0.375)


@pytest.mark.parametrize(("largest", "total"), [(0.0, 1.0), (1.0, 0.0), (-1.0, 1.0)])
def test_a_requirement_of_nothing_has_no_depth(largest: float, total: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        violation_depth([1.0], largest, total)
