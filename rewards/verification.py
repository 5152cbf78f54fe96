"""Forecast verification: the usual figures of yes/no forecasts, with intervals over events.

Questions on one event are not independent: the markets of an election resolve together. Intervals
therefore take events, not questions, as the independent units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.rewards.calibration import (
    ExpectedError,
    Floats,
    MurphyDecomposition,
    auc,
    expected_error,
    murphy,
)
from tokengym.rewards.clustered import mean_over_clusters
from tokengym.rewards.estimates import Estimate, bootstrap_estimate

BINS = 10
"""Bins of the calibration error and of Murphy's decomposition."""

_DRAWS = 1000


@dataclass(frozen=True)
class Verification:
    """The figures of N yes/no forecasts on E events.

    Attributes:
        asked: number of questions, well-formed answers or not.
        forecasts: number of forecasts: well-formed replies.
        events: number of events they are on.
        brier: mean of (p - y)² over the forecasts, in [0, 1], 0 is perfect.
        reward: mean of 1 - (p - y)² over the questions, a malformed reply earning 0.
        skill: 1 less the Brier score over that of the base rate: 0 is always stating it, 1 perfect.
        accuracy: share of forecasts on the right side of ½; ½ itself counts half.
        auc: area under the ROC curve; `None` where all outcomes are the same.
        calibration: expected calibration error over ten bins, with its null distribution; `None`
            of exact probabilities in place of outcomes.
        murphy: reliability - resolution + uncertainty + residual of the Brier score, ten bins.
    """

    asked: int
    forecasts: int
    events: int
    brier: Estimate
    reward: Estimate
    skill: Estimate
    accuracy: Estimate
    auc: Estimate | None
    calibration: ExpectedError | None
    murphy: MurphyDecomposition


def verify_forecasts(
    forecasts: npt.ArrayLike,
    outcomes: npt.ArrayLike,
    events: Sequence[str],
    base_rates: npt.ArrayLike,
    rng: np.random.Generator,
) -> Verification:
    """Return the figures of forecasts.

    Args:
        forecasts: probabilities of yes, shape (N,); NaN where a reply was malformed.
        outcomes: 0 or 1, or exact probabilities, shape (N,).
        events: what each question is about; equal for questions that are not independent.
        base_rates: the forecast that skill is measured from, one number or shape (N,).
        rng: draws events for the intervals of skill and AUC, and outcomes for the null of the
            calibration error.

    Raises:
        ValueError: if shapes differ, there is no forecast, or a number is out of range.
    """
    stated_N, outcomes_N = np.asarray(forecasts, np.float64), np.asarray(outcomes, np.float64)
    given_N = ~np.isnan(stated_N)
    if stated_N.ndim != 1 or not stated_N.shape == outcomes_N.shape == (len(events),):
        raise ValueError(
            "forecasts, outcomes and events need one shape (N,), got "
            f"{stated_N.shape}, {outcomes_N.shape} and ({len(events)},)"
        )
    if not given_N.any():
        raise ValueError("there is no well-formed forecast to verify")
    event_N = np.unique(np.asarray(events), return_inverse=True)[1]
    loss_N = (stated_N - outcomes_N) ** 2
    base_loss_N = np.broadcast_to((np.asarray(base_rates) - outcomes_N) ** 2, loss_N.shape)
    p, y, event = stated_N[given_N], outcomes_N[given_N], event_N[given_N]
    right = np.where(p == 0.5, 0.5, (p > 0.5) == (y > 0.5)).astype(np.float64)
    counts_DE = _draw_events(event, rng)
    exact = not np.all((y == 0.0) | (y == 1.0))
    return Verification(
        asked=len(stated_N),
        forecasts=int(given_N.sum()),
        events=len(np.unique(event)),
        brier=mean_over_clusters(loss_N[given_N], event),
        reward=mean_over_clusters(np.where(given_N, 1.0 - loss_N, 0.0), event_N),
        skill=_skill(loss_N[given_N], base_loss_N[given_N], event, counts_DE),
        accuracy=mean_over_clusters(right, event),
        auc=None if exact else _auc(p, y, event, counts_DE),
        calibration=None if exact else expected_error(p, y, rng, bins=BINS),
        murphy=murphy(p, y, BINS),
    )


def _draw_events(event_N: npt.NDArray[np.intp], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return how often each draw of a bootstrap takes each event, shape (draws, events)."""
    labels = np.unique(event_N)
    size = int(event_N.max()) + 1
    picks = rng.integers(len(labels), size=(_DRAWS, len(labels)))
    counts = np.zeros((_DRAWS, size), np.int64)
    np.add.at(counts, (np.arange(_DRAWS)[:, None], labels[picks]), 1)
    return counts


def _skill(
    loss_N: Floats, base_N: Floats, event_N: npt.NDArray[np.intp], counts_DE: npt.NDArray[np.int64]
) -> Estimate:
    size = counts_DE.shape[1]
    loss_D = counts_DE @ np.bincount(event_N, loss_N, size)
    base_D = counts_DE @ np.bincount(event_N, base_N, size)
    base = float(base_N.sum())
    value = 1.0 - float(loss_N.sum()) / base if base > 0.0 else float("nan")
    draws_D = 1.0 - loss_D[base_D > 0.0] / base_D[base_D > 0.0]
    return bootstrap_estimate(value, draws_D, len(np.unique(event_N)))


def _auc(
    p_N: Floats, y_N: Floats, event_N: npt.NDArray[np.intp], counts_DE: npt.NDArray[np.int64]
) -> Estimate | None:
    value = auc(p_N, y_N)
    if value is None:
        return None
    # By distinct forecast the weight of yes and of no; each draw weighs questions by its events.
    rank_N = np.unique(p_N, return_inverse=True)[1]
    draws = []
    for counts_E in counts_DE:
        weight_N = counts_E[event_N].astype(np.float64)
        yes_V = np.bincount(rank_N, weight_N * y_N)
        no_V = np.bincount(rank_N, weight_N * (1.0 - y_N))
        total = yes_V.sum() * no_V.sum()
        if total > 0.0:
            below_V = np.cumsum(no_V) - 0.5 * no_V
            draws.append(float(yes_V @ below_V / total))
    return bootstrap_estimate(value, np.array(draws), len(np.unique(event_N)))
