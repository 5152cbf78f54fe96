"""Where forecasters end that learn from a proper score, by the estimator, over all groups."""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import numpy.typing as npt
import pytest

from tests.every import every
from tokengym.rewards.advantages import group_centred, group_standardised, leave_one_out
from tokengym.rewards.scoring import Score, brier, log, spherical

STEP, GROUP = 0.01, 4
Array = npt.NDArray[np.float64]
Estimator = Callable[[Array], Array]
Labels = Sequence[tuple[float, float]]
"""Labels that a forecaster cannot tell apart, each with its probability."""


def push(estimator: Estimator, score: Score, low: float, labels: Labels) -> float:
    """Return the expected change of a forecaster that says `low` or one step more, by turns."""
    said = np.array(list(product((low, low + STEP), repeat=GROUP)))
    change = 0.0
    for odds, label in labels:
        paid = {p: score((1.0 - p, p), (1.0 - label, label)) for p in (low, low + STEP)}
        rewards = np.array([[paid[p] for p in group] for group in said.tolist()])
        change += odds * float((estimator(rewards) * said).sum())
    return change


def end(estimator: Estimator, score: Score, labels: Labels) -> float:
    """Return where the expected updates lead from one half: the first place they do not leave."""
    at = 0.5
    while at < 1.0 and push(estimator, score, at, labels) > 0.0:
        at = round(at + STEP, 2)
    while at > 0.0 and push(estimator, score, at - STEP, labels) < 0.0:
        at = round(at - STEP, 2)
    return at


def outcomes(happens: float) -> Labels:
    return [(happens, 1.0), (1.0 - happens, 0.0)]


@every("happens", [0.05, 0.3, 0.6, 0.75, 0.9])
@pytest.mark.parametrize("score", [brier, log, spherical])
def test_single_outcomes_teach_the_probability_centred_and_certainty_standardised(
    happens: float, score: Score
) -> None:
    for estimator in (group_centred, leave_one_out):
        assert end(estimator, score, outcomes(happens)) == pytest.approx(happens, abs=STEP)
    certain = float(happens > 0.5)
    # The log score tells no forecasts beyond .01 and .99 apart.
    found = end(group_standardised, score, outcomes(happens))
    assert found == pytest.approx(certain, abs=2 * STEP)


def test_exact_labels_teach_the_probability_either_way() -> None:
    for estimator in (group_centred, group_standardised):
        assert end(estimator, brier, [(1.0, 0.75)]) == pytest.approx(0.75, abs=STEP)


def test_lookalike_labels_teach_mean_centred_and_median_standardised() -> None:
    labels = [(0.6, 0.55), (0.4, 0.95)]
    assert end(group_centred, brier, labels) == pytest.approx(0.71, abs=STEP)
    assert end(group_standardised, brier, labels) == pytest.approx(0.55, abs=STEP)
