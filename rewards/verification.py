"""Forecast verification: the usual figures of yes/no forecasts, with intervals over events.

Questions on one event are not independent: the markets of an election resolve together. Intervals
therefore take events, not questions, as the independent units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats
from tokengym.rewards.calibration import (
    ExpectedError,
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
_PICKS_AT_ONCE = 100_000


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
            of exact probabilities instead of outcomes.
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
    exact = not np.all((y == 0.0) | (y == 1.0))
    happened = None if exact else y
    skill, area = _bootstrap(loss_N[given_N], base_loss_N[given_N], p, happened, event, rng)
    return Verification(
        asked=len(stated_N),
        forecasts=int(given_N.sum()),
        events=len(np.unique(event)),
        brier=mean_over_clusters(loss_N[given_N], event),
        reward=mean_over_clusters(np.where(given_N, 1.0 - loss_N, 0.0), event_N),
        skill=skill,
        accuracy=mean_over_clusters(right, event),
        auc=area,
        calibration=None if exact else expected_error(p, y, rng, bins=BINS),
        murphy=murphy(p, y, BINS),
    )


def _bootstrap(
    loss_N: Floats,
    base_N: Floats,
    p_N: Floats,
    y_N: Floats | None,
    event_N: npt.NDArray[np.intp],
    rng: np.random.Generator,
) -> tuple[Estimate, Estimate | None]:
    """Return skill and area under the curve, with intervals over draws of events.

    There is no area without outcomes.
    """
    labels, size = np.unique(event_N), int(event_N.max()) + 1
    loss_E, base_E = (np.bincount(event_N, of, size) for of in (loss_N, base_N))
    # All draws at once would take a gigabyte of 100,000 events.
    rows = max(1, _PICKS_AT_ONCE // max(len(labels), len(p_N)))
    skills, areas = [], []
    for first in range(0, _DRAWS, rows):
        draws = min(rows, _DRAWS - first)
        picks_DL = labels[rng.integers(len(labels), size=(draws, len(labels)))]
        at_DL = picks_DL + size * np.arange(draws)[:, None]
        counts_DE = np.bincount(at_DL.ravel(), minlength=draws * size).reshape(draws, size)
        base_D = counts_DE @ base_E
        some_D = base_D > 0.0
        skills.append(1.0 - (counts_DE @ loss_E)[some_D] / base_D[some_D])
        if y_N is not None:
            areas.append(_areas(p_N, y_N, counts_DE, event_N))
    base = float(base_N.sum())
    value = 1.0 - float(loss_N.sum()) / base if base > 0.0 else float("nan")
    skill = bootstrap_estimate(value, np.concatenate(skills), len(labels))
    area = None if y_N is None else auc(p_N, y_N)
    if area is None:
        return skill, None
    areas_D = np.concatenate(areas)
    # The same area in every draw does not mean that all forecasts are equal.
    samples = len(labels) if np.ptp(areas_D) > 0.0 else 0
    return skill, bootstrap_estimate(area, areas_D, samples)


def _areas(
    p_N: Floats, y_N: Floats, counts_DE: npt.NDArray[np.intp], event_N: npt.NDArray[np.intp]
) -> Floats:
    """Return the area under the curve of each draw of events that has yes and no."""
    order_N = np.argsort(p_N)
    last_V = np.flatnonzero(np.diff(p_N[order_N], append=np.inf))
    weights_DN = counts_DE[:, event_N[order_N]]
    # Up to each distinct forecast the weight of yes and of no.
    yes_DV, no_DV = (
        np.cumsum(weights_DN * of_N, axis=1)[:, last_V]
        for of_N in (y_N[order_N], 1.0 - y_N[order_N])
    )
    here_DV, ties_DV = (np.diff(upto_DV, axis=1, prepend=0.0) for upto_DV in (yes_DV, no_DV))
    above_D = (here_DV * (no_DV - 0.5 * ties_DV)).sum(axis=1)
    total_D = yes_DV[:, -1] * no_DV[:, -1]
    areas_D: Floats = above_D[total_D > 0.0] / total_D[total_D > 0.0]
    return areas_D
