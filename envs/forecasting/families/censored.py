"""A log that keeps only bad days: will the next day bring more than c faults?

Faults a day are Poisson, the rate one of `_RATES`, all alike beforehand. The logged days have their
Poisson likelihood, and each day left out that of staying at or below the log's limit.
"""

import math

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli, normalise
from tokengym.envs.forecasting.families.poisson import poisson_tail
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_RATES = tuple(0.5 * half for half in range(1, 25))


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    rate = float(rng.choice(_RATES))
    limit = int(rng.integers(2, 7))
    days = int(rng.integers(10, 12 * knobs.size))
    counts = rng.poisson(rate, size=days)
    return {
        "days": days,
        "limit": limit,
        "logged": counts[counts > limit],
        "threshold": int(rng.integers(1, 15)),
    }


def _posterior(shown: Shown) -> list[float]:
    """Return the probability of each rate, given the log."""
    logged, left_out = shown["logged"], shown["days"] - len(shown["logged"])
    logs = []
    for rate in _RATES:
        quiet = 1.0 - poisson_tail(rate, shown["limit"])
        logs.append(sum(logged) * math.log(rate) - len(logged) * rate + left_out * math.log(quiet))
    return normalise(logs)


def _predictive(shown: Shown) -> Forecast:
    weighed = zip(_RATES, _posterior(shown), strict=True)
    return bernoulli(
        sum(weight * poisson_tail(rate, shown["threshold"]) for rate, weight in weighed)
    )


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    rate = _RATES[int(rng.choice(len(_RATES), p=_posterior(shown)))]
    return bernoulli(poisson_tail(rate, shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds at the mean of all days, those left out at half the log's limit."""
    logged, days = shown["logged"], shown["days"]
    left_out = 0.5 * shown["limit"] * (days - len(logged))
    return bernoulli(poisson_tail((sum(logged) + left_out) / days, shown["threshold"]))


FAMILY = Family(
    "censored",
    "Daily faults are Poisson at one of 24 equally likely rates; the log keeps bad days.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
