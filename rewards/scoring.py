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
"""The scores by name."""
