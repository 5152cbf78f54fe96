"""Laws of the debate's rewards: proper, bounded, and deaf to a change of mind as such."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards import debate
from tokengym.rewards.bounds import Range, dyadic
from tokengym.rewards.form import FORM_SHARE
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


@pytest.mark.nightly
def test_parts_keep_their_ranges() -> None:
    parts = {name: (term.low, term.high) for name, term in debate.PROPER.items()}
    check_reward(debate.reasoning, unit, range=parts["reasoning"])
    check_reward(debate.calibration, unit, unit, range=parts["calibration"], slack=1e-12)
    check_reward(debate.consistency, unit, unit, range=parts["consistency"], slack=1e-12)
    check_reward(
        debate.false_claims, st.integers(0, debate.MOST_CLAIMS), range=parts["false_claims"]
    )
    assert Range(-1.75 - dyadic(FORM_SHARE), 1.9375) == debate.TOTAL
    false = st.integers(0, debate.MOST_CHALLENGER_CLAIMS)
    for change in (debate.misleading, debate.helping):
        check_reward(
            lambda first, final, false, near, disclosed, change=change: (
                change(first, final)
                + debate.challenger_false_claims(false)
                + debate.silence(disclosed)
                + debate.challenger_form(near)
            ),
            *(unit, unit, false, unit, st.booleans()),
            range=debate.CHALLENGER_TOTAL,
        )


@given(right=unit, validity=unit, judged=unit, first=unit, final=unit)
def test_the_first_described_reward_sums_three_terms(
    right: float, validity: float, judged: float, first: float, final: float
) -> None:
    terms = debate.original(right, validity, judged, first, final)
    assert terms == {
        "correctness": pytest.approx(right - (1.0 - right), abs=1e-12),
        "reasoning": pytest.approx(0.3 * validity * (1.0 - judged), abs=1e-12),
        "adaptation": pytest.approx(0.2 * (1.0 - (first + 3.0 * final) / 4.0), abs=1e-12),
    }
    for name, (low, high) in {
        "correctness": (-1.0, 1.0),
        "reasoning": (0.0, 0.3),
        "adaptation": (0.0, 0.2),
    }.items():
        assert low - 1e-12 <= terms[name] <= high + 1e-12
        assert Range(low, high) == debate.ORIGINAL[name]
    assert sum(terms.values()) in debate.total_range(debate.ORIGINAL)


@given(belief=distributions(), first=distributions(), final=distributions())
def test_honest_reports_are_optimal_for_the_original_adaptation_too(
    belief: tuple[float, ...], first: tuple[float, ...], final: tuple[float, ...]
) -> None:
    losses = [debate.half_brier(report, belief) for report in (belief, first, final)]
    honest, other = (
        debate.original(1.0, 1.0, 0.5, before, after)["adaptation"]
        for before, after in ((losses[0], losses[0]), (losses[1], losses[2]))
    )
    assert other <= honest + 1e-12


@given(truth=distributions())
def test_the_judges_prior_always_loses_a_third(truth: tuple[float, ...]) -> None:
    assert debate.half_brier((1 / 3, 1 / 3, 1 / 3), truth) == pytest.approx(debate.PRIOR_LOSS)
    assert debate.reasoning(debate.PRIOR_LOSS) == 0.0


@given(truth=distributions(), report=distributions(), label=st.integers(0, 2))
def test_a_label_that_contradicts_its_report_costs_and_never_pays(
    truth: tuple[float, ...], report: tuple[float, ...], label: int
) -> None:
    def earned(label: int, report: tuple[float, ...]) -> float:
        loss, gap = debate.half_brier(report, truth), debate.contradiction(label, report)
        return (
            debate.correctness(label, truth)
            + debate.calibration(loss, loss)
            + debate.consistency(gap, gap)
        )

    best = earned(truth.index(max(truth)), truth)
    assert earned(label, report) <= best + 1e-12
    cost = debate.consistency(1.0, 1.0) * (max(report) - report[label])
    gap = debate.contradiction(label, report)
    assert debate.consistency(gap, gap) == pytest.approx(cost)
    assert (cost < 0.0) == (report[label] < max(report))


@pytest.mark.parametrize("change", [debate.misleading, debate.helping])
@given(truth=distributions(), first=distributions(), final=distributions())
def test_no_pair_of_reports_raises_the_sum_of_both_roles(
    change: Callable[[float, float], float],
    truth: tuple[float, ...],
    first: tuple[float, ...],
    final: tuple[float, ...],
) -> None:
    honest = debate.half_brier(truth, truth)
    before, after = debate.half_brier(first, truth), debate.half_brier(final, truth)
    together = debate.calibration(before, after) + change(before, after)
    assert together <= debate.calibration(honest, honest) + 1e-12


@given(first=distributions(), final=distributions(), truth=distributions())
def test_no_pair_of_reports_earns_more_than_the_honest_pair(
    first: tuple[float, ...], final: tuple[float, ...], truth: tuple[float, ...]
) -> None:
    honest = debate.half_brier(truth, truth)
    earned = debate.calibration(debate.half_brier(first, truth), debate.half_brier(final, truth))
    assert earned <= debate.calibration(honest, honest) + 1e-12


@given(belief=distributions(), first=distributions())
def test_sandbagging_the_first_report_costs(
    belief: tuple[float, ...], first: tuple[float, ...]
) -> None:
    honest, hidden = debate.half_brier(belief, belief), debate.half_brier(first, belief)
    lost = debate.calibration(honest, honest) - debate.calibration(hidden, honest)
    assert lost == pytest.approx(1.25 * 0.25 * (hidden - honest), abs=1e-12)


@given(belief=distributions())
def test_challengers_of_opposite_aims_are_paid_opposite(belief: tuple[float, ...]) -> None:
    first, final = debate.half_brier((1, 0, 0), belief), debate.half_brier((0, 1, 0), belief)
    assert debate.misleading(first, final) == -debate.helping(first, final)


def test_arrays_are_scored_entry_by_entry() -> None:
    reports = np.array([[1.0, 0.2], [0.0, 0.3], [0.0, 0.5]])
    truths = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    scored = debate.half_brier(tuple(reports), tuple(truths))
    assert np.allclose(scored, [1.0, 0.5 * (0.04 + 0.49 + 0.25)])
