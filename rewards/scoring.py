"""Proper scores of a forecast over the outcomes of one question, each in [0, 1], higher is better.

A score takes the forecast and the weights of the outcomes: all weight on what happened for an
observed outcome, shares for an average over replays, probabilities for the expected score. Scores
are linear in the weights, so the expected score needs no separate formula.
"""

import math
from collections.abc import Callable, Mapping
from operator import mul
from types import MappingProxyType

Forecast = tuple[float, ...]
"""One probability an outcome, summing to 1; of a yes/no question (no, yes)."""

Score = Callable[[Forecast, Forecast], float]
"""From a forecast and the weights of the outcomes (both sum to 1) to a score in [0, 1]."""

LOG_FLOOR = 0.01
"""Smallest probability that the log score distinguishes."""

_LOG_SPAN = -math.log(LOG_FLOOR)


def brier(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 minus the half-Brier score, 1 - ½ Σ_i (p_i - y_i)², averaged over the weights.

    Of a yes/no question this is 1 - (p - y)². Strictly proper (Brier 1950).
    """
    if len(forecast) == 2:  # the same sums, faster
        (p, q), (v, w) = forecast, weights
        return 0.5 + (p * v + q * w) - 0.5 * (p * p + q * q)
    return 0.5 + _dot(forecast, weights) - 0.5 * _dot(forecast, forecast)


def log(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 + Σ_i w_i ln q_i / |ln ε|, with q the forecast clipped to at least ε = `LOG_FLOOR`.

    Strictly proper (Good 1952) among forecasts of at least ε. Every forecast is scored as
    `clip_forecast(forecast, ε)`, so an honest report is never beaten below ε either.
    """
    clipped = clip_forecast(forecast, LOG_FLOOR)
    return 1.0 + _dot(weights, tuple(map(math.log, clipped))) / _LOG_SPAN


def spherical(forecast: Forecast, weights: Forecast) -> float:
    """Return Σ_i w_i p_i / √(Σ_i p_i²). Strictly proper (Roby 1965)."""
    return _dot(forecast, weights) / math.sqrt(_dot(forecast, forecast))


def ranked(forecast: Forecast, weights: Forecast) -> float:
    """Return 1 minus the ranked probability score over k outcomes in order.

    The ranked probability score is Σ_j (F_j - O_j)² / (k - 1) over the k - 1 thresholds between
    outcomes, with F_j the probability of the first j outcomes and O_j whether it was one of them:
    the mean Brier score of the yes/no questions at the thresholds. Strictly proper (Epstein 1969,
    Murphy 1971).
    """
    return _ranked(forecast, weights, (1.0,) * (len(forecast) - 1))


def ranked_upper(forecast: Forecast, weights: Forecast) -> float:
    """Return `ranked` with weight j on the j-th threshold: errors about high outcomes cost most.

    A threshold-weighted score of Gneiting and Ranjan (2011); strictly proper, as no weight is 0.
    """
    return _ranked(forecast, weights, tuple(map(float, range(1, len(forecast)))))


def _ranked(forecast: Forecast, weights: Forecast, thresholds: tuple[float, ...]) -> float:
    loss = below = happened = 0.0
    for p, w, weight in zip(forecast, weights, thresholds, strict=False):
        below, happened = below + p, happened + w
        # The mean over outcomes of (F - O)², where O is 1 with weight `happened`.
        loss += weight * (below * below - 2.0 * below * happened + happened)
    return 1.0 - loss / sum(thresholds)


def clip_forecast(forecast: Forecast, floor: float) -> Forecast:
    """Raise probabilities below `floor` to it, and scale the others so that the sum stays 1.

    The result maximises Σ_i p_i ln q_i over all q with q_i ≥ floor and Σ_i q_i = 1 (the
    Karush-Kuhn-Tucker conditions give q_i = max(floor, c·p_i)).

    Args:
        forecast: probabilities of at most 1 / floor outcomes.
        floor: smallest probability of the result.
    """
    raised = {i for i, p in enumerate(forecast) if p < floor}
    if not raised:
        return forecast
    while True:
        mass = sum(p for i, p in enumerate(forecast) if i not in raised)
        scale = (1.0 - floor * len(raised)) / mass
        sunk = {i for i, p in enumerate(forecast) if i not in raised and p * scale < floor}
        if not sunk:
            return tuple(floor if i in raised else p * scale for i, p in enumerate(forecast))
        raised |= sunk


def _dot(a: Forecast, b: Forecast) -> float:
    total: float = sum(map(mul, a, b))
    return total


SCORES: Mapping[str, Score] = MappingProxyType({"brier": brier, "log": log, "spherical": spherical})
"""The scores of outcomes in no order, by name."""

ORDERED_SCORES: Mapping[str, Score] = MappingProxyType(
    {"ranked": ranked, "ranked_upper": ranked_upper}
)
"""The scores of outcomes in order, by name. Of two outcomes both are the Brier score."""


def score_of(name: str, *, ordered: bool) -> Score:
    """Return a score by name; those of outcomes in order are the Brier score of others.

    Args:
        name: of `SCORES` or `ORDERED_SCORES`.
        ordered: whether the outcomes are in order.
    """
    if name in ORDERED_SCORES:
        return ORDERED_SCORES[name] if ordered else brier
    return SCORES[name]
