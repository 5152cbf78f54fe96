"""Laws of the debate's rewards: proper, bounded, and deaf to a change of mind as such."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards import debate
from tokengym.rewards.bounds import Range
from tokengym.testing import check_reward

unit = st.floats(0, 1)


@st.composite
def distributions(draw: st.DrawFn) -> tuple[float, ...]:
    weights = draw(st.tuples(*[st.integers(0, 100)] * 3).filter(any))
    return tuple(weight / sum(weights) for weight in weights)


@given(report=distributions(), y=st.integers(0, 2))
def test_half_brier_of_a_drawn_label_is_its_definition(report: tuple[float, ...], y: int) -> None:
    truth = [float(k == y) for k in range(3)]
    definition = 0.5 * sum((p - t) ** 2 for p, t in zip(report, truth, strict=True))
    assert debate.half_brier(report, truth) == pytest.approx(definition, abs=1e-12)
    assert -1e-12 <= debate.half_brier(report, truth) <= 1 + 1e-12


@given(report=distributions(), truth=distributions())
def test_half_brier_is_least_at_the_truth_and_there_alone(
    report: tuple[float, ...], truth: tuple[float, ...]
) -> None:
    excess = debate.half_brier(report, truth) - debate.half_brier(truth, truth)
    distance = 0.5 * sum((p - t) ** 2 for p, t in zip(report, truth, strict=True))
    assert excess == pytest.approx(distance, abs=1e-12)


@given(report=distributions(), truth=distributions())
def test_a_posterior_scores_the_expectation_over_labels(
    report: tuple[float, ...], truth: tuple[float, ...]
) -> None:
    drawn = [debate.half_brier(report, [float(k == y) for k in range(3)]) for y in range(3)]
    expected = sum(t * loss for t, loss in zip(truth, drawn, strict=True))
    assert debate.half_brier(report, truth) == pytest.approx(expected, abs=1e-12)
    right = sum(
        t * debate.correctness(1, [float(k == y) for k in range(3)]) for y, t in enumerate(truth)
    )
    assert debate.correctness(1, truth) == pytest.approx(right, abs=1e-12)


def test_parts_keep_their_ranges() -> None:
    check_reward(debate.reasoning, unit, unit, range=(0.0, debate.MOST_REASONING))
    check_reward(debate.adaptation, unit, unit, range=(0.0, debate.MOST_ADAPTATION), slack=1e-12)
    assert Range(-1.0, 1.5) == debate.TOTAL
    false = st.integers(0, debate.MOST_CHALLENGER_CLAIMS)
    for change in (debate.misleading, debate.helping):
        check_reward(
            lambda first, final, false, change=change: (
                change(first, final) + debate.false_claims(false)
            ),
            *(unit, unit, false),
            range=debate.CHALLENGER_TOTAL,
        )


@given(first=distributions(), final=distributions(), truth=distributions())
def test_no_pair_of_reports_earns_more_than_the_honest_pair(
    first: tuple[float, ...], final: tuple[float, ...], truth: tuple[float, ...]
) -> None:
    honest = debate.half_brier(truth, truth)
    earned = debate.adaptation(debate.half_brier(first, truth), debate.half_brier(final, truth))
    assert earned <= debate.adaptation(honest, honest) + 1e-12


@given(belief=distributions(), first=distributions())
def test_sandbagging_the_first_report_costs(
    belief: tuple[float, ...], first: tuple[float, ...]
) -> None:
    honest, hidden = debate.half_brier(belief, belief), debate.half_brier(first, belief)
    lost = debate.adaptation(honest, honest) - debate.adaptation(hidden, honest)
    assert lost == pytest.approx(0.2 * 0.25 * (hidden - honest), abs=1e-12)


@given(belief=distributions(), told=distributions())
def test_claims_picked_for_another_belief_earn_no_more(
    belief: tuple[float, ...], told: tuple[float, ...]
) -> None:
    honest = debate.reasoning(1.0, debate.half_brier(belief, belief))
    assert debate.reasoning(1.0, debate.half_brier(told, belief)) <= honest + 1e-12


@given(belief=distributions())
def test_challengers_of_opposite_aims_are_paid_opposite(belief: tuple[float, ...]) -> None:
    first, final = debate.half_brier((1, 0, 0), belief), debate.half_brier((0, 1, 0), belief)
    assert debate.misleading(first, final) == -debate.helping(first, final)


def test_arrays_are_scored_entry_by_entry() -> None:
    reports = np.array([[1.0, 0.2], [0.0, 0.3], [0.0, 0.5]])
    truths = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    scored = debate.half_brier(tuple(reports), tuple(truths))
    assert np.allclose(scored, [1.0, 0.5 * (0.04 + 0.49 + 0.25)])
