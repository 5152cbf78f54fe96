"""Daily counts under conditions that change the rate by factors no question states.

The rate of a day is the plant's own rate, with a Gamma prior, times the factor of the day's
weather. The posterior of its own rate is Gamma, the law of the next day negative binomial.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.forecasting.families.base import (
    Family,
    Knobs,
    Shown,
    bernoulli,
    counted,
    spread_out,
)
from tokengym.envs.forecasting.families.poisson import negative_binomial_tail, poisson_tail
from tokengym.rewards.scoring import Forecast

FACTORS: Mapping[str, float] = MappingProxyType(
    {"sun": 1.0, "cloud": 0.3, "rain": 2.5, "wind": 0.6, "fog": 5.0, "snow": 0.1}
)
"""What each weather makes of the rate."""

_NAMES = tuple(FACTORS)
_SHAPE, _MEAN = 2.0, 10.0


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    days = int(rng.integers(knobs.size, 2 * knobs.size + 1))
    weather = [_NAMES[i] for i in rng.integers(len(_NAMES), size=days + 1)]
    rate = rng.gamma(_SHAPE, _MEAN / _SHAPE)
    counts = [int(rng.poisson(rate * FACTORS[name])) for name in weather[:-1]]
    # Near what the next day's weather makes of the counts, so that the answer is open.
    shape, seen = _posterior({"weather": weather, "counts": counts})
    middle = FACTORS[weather[-1]] * shape / seen
    threshold = max(0, round(middle + math.sqrt(middle + 1.0) * spread_out(rng, knobs)))
    return {"weather": weather, "counts": counts, "threshold": threshold}


def _text(shown: Shown) -> str:
    *past, following = shown["weather"]
    days = ", ".join(f"{name} {n}" for name, n in zip(past, shown["counts"], strict=True))
    return f"Faults a day: {days}. Next {following}. More than {shown['threshold']}?"


def _full_text(shown: Shown) -> str:
    *past, following = shown["weather"]
    days = ", ".join(
        f"{counted(n, 'fault')} on a day of {name}"
        for name, n in zip(past, shown["counts"], strict=True)
    )
    return (
        f"The weather changes how many faults a plant has. So far: {days}. Tomorrow is a day of "
        f"{following}. Question: Will it bring more than {counted(shown['threshold'], 'fault')}?"
    )


def _posterior(shown: Shown) -> tuple[float, float]:
    """Return shape and rate of the Gamma posterior of the place's own rate."""
    exposure = sum(FACTORS[name] for name in shown["weather"][:-1])
    return _SHAPE + sum(shown["counts"]), _SHAPE / _MEAN + exposure


def _predictive(shown: Shown) -> Forecast:
    shape, rate = _posterior(shown)
    factor = FACTORS[shown["weather"][-1]]
    return bernoulli(negative_binomial_tail(shape, factor / rate, shown["threshold"]))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    shape, rate = _posterior(shown)
    own = float(rng.gamma(shape, 1.0 / rate))
    return bernoulli(poisson_tail(own * FACTORS[shown["weather"][-1]], shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds at the mean of days with tomorrow's weather; one half without such a day."""
    *past, following = shown["weather"]
    alike = [n for name, n in zip(past, shown["counts"], strict=True) if name == following]
    if not alike:
        return bernoulli(0.5)
    return bernoulli(poisson_tail((sum(alike) + 0.5) / len(alike), shown["threshold"]))


FAMILY = Family("conditions", _draw, _predictive, _latent, _empirical, full=_full_text, terse=_text)
