"""Laws of the calibration report: exact decompositions, invariances, the null distribution."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.rewards.calibration import (
    auc,
    consistency_band,
    corp,
    expected_error,
    murphy,
    reliability,
)

outcome = st.integers(0, 1)
chance = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.1, 0.5, 1.0])
pairs = st.lists(st.tuples(chance, outcome), min_size=1, max_size=40)
Pairs = list[tuple[float, int]]


def split(pairs: Pairs) -> tuple[list[float], list[int]]:
    return [p for p, _ in pairs], [y for _, y in pairs]


def loss(pairs: Pairs) -> float:
    return float(np.mean([(p - y) ** 2 for p, y in pairs]))


@given(pairs)
def test_the_corp_terms_are_exact_and_never_negative(pairs: Pairs) -> None:
    terms = corp(*split(pairs))
    assert terms.miscalibration >= -1e-12
    assert terms.discrimination >= -1e-12
    assert terms.miscalibration - terms.discrimination + terms.uncertainty == pytest.approx(
        loss(pairs), abs=1e-12
    )
    assert np.all(np.diff(terms.recalibrated_V) >= -1e-12)


@given(st.lists(st.tuples(chance, outcome), min_size=1, max_size=7))
def test_no_monotone_recalibration_beats_corp(pairs: Pairs) -> None:
    forecasts, outcomes = split(pairs)
    terms = corp(forecasts, outcomes)
    least = terms.uncertainty - terms.discrimination
    values = sorted(set(forecasts))
    for candidate in itertools.combinations_with_replacement(np.linspace(0, 1, 5), len(values)):
        mapped = dict(zip(values, candidate, strict=True))
        assert loss([(mapped[p], y) for p, y in pairs]) >= least - 1e-12


@given(pairs)
def test_the_murphy_terms_are_exact_over_distinct_forecasts(pairs: Pairs) -> None:
    terms = murphy(*split(pairs))
    assert terms.residual == pytest.approx(0.0, abs=1e-12)
    assert terms.reliability - terms.resolution + terms.uncertainty == pytest.approx(
        loss(pairs), abs=1e-12
    )


def test_murphy_terms_leave_a_residual_within_bins() -> None:
    assert abs(murphy([0.41, 0.49], [0, 1], bins=10).residual) > 1e-3


@given(pairs, st.integers(1, 20))
def test_a_reliability_diagram_keeps_counts_and_means(pairs: Pairs, bins: int) -> None:
    forecasts, outcomes = split(pairs)
    diagram = reliability(forecasts, outcomes, bins)
    assert diagram.counts_B.sum() == len(pairs)
    assert len(diagram.counts_B) <= bins
    assert diagram.counts_B @ diagram.forecasts_B == pytest.approx(sum(forecasts))
    assert diagram.counts_B @ diagram.frequencies_B == pytest.approx(sum(outcomes))


@given(pairs, st.integers(1, 20))
def test_the_expected_error_is_the_diagrams_mean_gap(pairs: Pairs, bins: int) -> None:
    forecasts, outcomes = split(pairs)
    diagram = reliability(forecasts, outcomes, bins)
    measured = expected_error(forecasts, outcomes, np.random.default_rng(0), bins=bins)
    gap_B = np.abs(diagram.forecasts_B - diagram.frequencies_B)
    assert measured.error == pytest.approx(diagram.counts_B @ gap_B / len(pairs))


@given(pairs)
def test_auc_counts_pairs(pairs: Pairs) -> None:
    positive = [p for p, y in pairs if y]
    negative = [p for p, y in pairs if not y]
    measured = auc(*split(pairs))
    if not positive or not negative:
        assert measured is None
        return
    wins = [(p > q) + 0.5 * (p == q) for p in positive for q in negative]
    assert measured == pytest.approx(np.mean(wins))


def test_the_null_quantile_separates_perfect_from_biased_forecasters() -> None:
    rng = np.random.default_rng(9)
    exceed = []
    for _ in range(60):
        forecasts = rng.random(200)
        outcomes = (rng.random(200) < forecasts).astype(int)
        fair = expected_error(forecasts, outcomes, rng)
        exceed.append(fair.error > fair.null_quantile)
        sharpened = expected_error((forecasts > 0.5).astype(float), outcomes, rng)
        assert sharpened.error > sharpened.null_quantile
    assert sum(exceed) <= 10


@pytest.mark.parametrize(
    ("forecasts", "outcomes", "message"),
    [
        ([], [], "N >= 1"),
        ([0.5], [1, 0], "one shape"),
        ([[0.5]], [[1]], "one shape"),
        ([1.5], [1], "probabilities"),
        ([float("nan")], [1], "probabilities"),
        ([0.5], [1.5], "0 or 1"),
    ],
)
def test_arrays_that_are_not_forecasts_are_refused(
    forecasts: list[float], outcomes: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        corp(forecasts, outcomes)


def test_exact_probabilities_need_no_outcomes_but_have_no_null_distribution() -> None:
    rng = np.random.default_rng(3)
    chances = rng.random(50)
    terms = corp(chances, chances)
    assert terms.miscalibration == pytest.approx(0.0, abs=1e-12)
    assert terms.uncertainty == pytest.approx(chances.var())
    assert terms.discrimination == pytest.approx(terms.uncertainty)
    for measure in (auc, lambda p, y: expected_error(p, y, rng)):
        with pytest.raises(ValueError, match="0 or 1"):
            measure(chances, chances)


def test_the_consistency_band_holds_calibrated_forecasts_and_not_biased_ones() -> None:
    rng = np.random.default_rng(4)
    forecasts = np.round(0.1 + 0.8 * rng.random(300), 1)
    band = consistency_band(forecasts, rng)
    assert np.all(band.low_V <= band.values_V + 1e-12)
    assert np.all(band.values_V <= band.high_V + 1e-12)

    def outside(chances: np.ndarray) -> float:
        found = [corp(forecasts, rng.random(300) < chances).recalibrated_V for _ in range(50)]
        return float(np.mean([(curve < band.low_V) | (curve > band.high_V) for curve in found]))

    assert outside(forecasts) == pytest.approx(0.1, abs=0.05)
    assert outside(np.clip(2 * forecasts - 0.5, 0, 1)) > 0.4
