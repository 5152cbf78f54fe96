"""AR(1): a temperature pulled back to its mean; will it be above a threshold?

A past series is shown. The pair of pull φ and noise s is one of a few; each day's value is rounded
to a whole degree before the next, so the likelihood of the series is a product of normal
probabilities of unit cells, and the posterior is exact.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tokengym.envs.forecasting.families.base import (
    Family,
    Shown,
    bernoulli,
    normal_tail,
    normalise,
    spread_out,
)
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_HIDDEN = ((0.3, 3.0), (0.3, 8.0), (0.8, 3.0), (0.8, 8.0), (0.95, 3.0), (0.95, 8.0))


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    mean = int(rng.integers(30, 91))
    pull, noise = _HIDDEN[int(rng.integers(len(_HIDDEN)))]
    deviations = [0]
    for _ in range(int(rng.integers(8, 8 * knobs.size))):
        deviations.append(round(pull * deviations[-1] + noise * float(rng.normal())))
    series = [mean + deviation for deviation in deviations]
    width = max(2.0, float(np.std(series)))
    threshold = round(mean + 0.7 * deviations[-1] + width * spread_out(rng, knobs))
    # No level states pull and noise, or asks of a later day than the next one.
    return {"mean": mean, "series": series, "known": None, "ahead": 1, "threshold": threshold}


def _rounded_tail(deviation: float, threshold: int, pull: float, noise: float) -> float:
    """Return the chance that the next deviation, rounded to a whole number, exceeds `threshold`."""
    return normal_tail((threshold + 0.5 - pull * deviation) / noise)


def posterior(deviations: Sequence[int]) -> list[float]:
    """Return the posterior of each hidden (φ, s), all alike beforehand, given a rounded series."""
    logs = []
    for pull, noise in _HIDDEN:
        log = 0.0
        for old, new in pairwise(deviations):
            # The cell's mass by its nearer tail, so that far cells do not cancel to zero.
            distance = abs(new - pull * old)
            cell = normal_tail((distance - 0.5) / noise) - normal_tail((distance + 0.5) / noise)
            log += math.log(max(cell, 1e-300))
        logs.append(log)
    return normalise(logs)


def _each_hidden(shown: Shown) -> list[float]:
    now, threshold = shown["series"][-1] - shown["mean"], shown["threshold"] - shown["mean"]
    return [_rounded_tail(now, threshold, *hidden) for hidden in _HIDDEN]


def _posterior(shown: Shown) -> list[float]:
    return posterior([value - shown["mean"] for value in shown["series"]])


def _predictive(shown: Shown) -> Forecast:
    return bernoulli(
        math.fsum(w * p for w, p in zip(_posterior(shown), _each_hidden(shown), strict=True))
    )


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return bernoulli(_each_hidden(shown)[int(rng.choice(len(_HIDDEN), p=_posterior(shown)))])


def _empirical(shown: Shown) -> Forecast:
    """Return the odds with φ and s by least squares."""
    x = [value - shown["mean"] for value in shown["series"]]
    squares = sum(old * old for old in x[:-1])
    products = sum(old * new for old, new in pairwise(x))
    pull = products / (squares + 1.0)
    misses = [new - pull * old for old, new in pairwise(x)]
    noise = math.sqrt((1.0 + sum(miss * miss for miss in misses)) / len(misses))
    return bernoulli(_rounded_tail(x[-1], shown["threshold"] - shown["mean"], pull, noise))


FAMILY = Family(
    "autoregression",
    "Deviations from a mean are AR(1) with normal noise; pull and noise are hidden.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
