"""Daily counts, Poisson with a Gamma prior on the rate: will the next days exceed c?

The predictive law of the sum of further days is negative binomial.
"""

import math
from itertools import accumulate

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli, spread_out
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_SHAPES, _MEANS = (1.0, 2.0, 4.0, 8.0), (3, 15)
"""Shapes, and smallest and largest mean, of a prior that is stated."""
_UNSTATED = (2.0, 8.0)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    prior = _UNSTATED
    if knobs.stated:
        prior = float(rng.choice(_SHAPES)), float(rng.integers(_MEANS[0], _MEANS[1] + 1))
    shape, mean = prior
    rate = rng.gamma(shape, mean / shape)
    counts = rng.poisson(rate, size=int(rng.integers(3, 4 + 2 * knobs.size)))
    later = rng.poisson(rate, size=int(rng.integers(4, 9))) if knobs.staged else None
    if knobs.staged:
        counts = counts[:3]
    ahead = 1 if knobs.size == 1 else int(rng.integers(1, 2 * knobs.size))
    # A function of the first counts and of chance alone: drawn around the hidden rate, or around
    # later counts, the threshold would reveal something about them.
    middle = (float(counts.mean()) + 0.2) * ahead
    return {
        "counts": counts,
        "later": later,
        "ahead": ahead,
        "threshold": max(0, round(middle + math.sqrt(middle) * spread_out(rng, knobs))),
        "prior": prior,
        "stated": knobs.stated,
    }


def _seen(shown: Shown) -> list[int]:
    return [*shown["counts"], *(shown["later"] or ())]


def _posterior(shown: Shown) -> tuple[float, float]:
    """Return shape and rate of the Gamma posterior."""
    shape, mean = shown["prior"]
    seen = _seen(shown)
    return shape + sum(seen), shape / mean + len(seen)


def negative_binomial_tail(shape: float, mean: float, threshold: int) -> float:
    """Return P(X > threshold) of X ~ Poisson(mean·G), G ~ Gamma(shape, scale 1).

    Args:
        shape: shape of the Gamma law, > 0.
        mean: mean of X where G is 1, > 0.
        threshold: at least 0.
    """
    share = mean / (1.0 + mean)
    term = math.pow(1.0 - share, shape)
    below = term
    for x in range(threshold):
        term *= (shape + x) / (x + 1) * share
        below += term
    return 1.0 - below


def poisson_tail(mean: float, threshold: int) -> float:
    """Return P(X > threshold) of a Poisson X with `mean` > 0."""
    term = math.exp(-mean)
    below = term
    for x in range(1, threshold + 1):
        term *= mean / x
        below += term
    return 1.0 - below


def _predictive(shown: Shown) -> Forecast:
    shape, rate = _posterior(shown)
    return bernoulli(negative_binomial_tail(shape, shown["ahead"] / rate, shown["threshold"]))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    shape, rate = _posterior(shown)
    daily = float(rng.gamma(shape, 1.0 / rate))
    return bernoulli(poisson_tail(daily * shown["ahead"], shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    seen = _seen(shown)
    # Half a fault more than was seen keeps a quiet history from meaning never.
    daily = (sum(seen) + 0.5) / len(seen)
    return bernoulli(poisson_tail(daily * shown["ahead"], shown["threshold"]))


def _steps(shown: Shown) -> str:
    """Add up how far each count is from the threshold, its share of one day.

    Small differences are easier than sums and means: SmolLM2 wrote one line in eight of those
    without an error; and an error in the tens digit of a sum spoils the answer.
    """
    seen, ahead = _seen(shown), shown["ahead"]
    share = round(shown["threshold"] / ahead)
    steps = f"{share}:" if ahead == 1 else f"{shown['threshold']}/{ahead}={share}:"
    differences = [count - share for count in seen]
    sums = list(accumulate(differences))
    each = zip(seen, differences, sums, strict=True)
    steps += ",".join(f" {count} {more:+d} {total:+d}" for count, more, total in each)
    return f"{steps}: {sums[-1]:+d} in {len(seen)}"


FAMILY = Family(
    "poisson",
    "Counts a day are Poisson at one hidden Gamma-distributed rate.",
    _draw,
    _predictive,
    _latent,
    _empirical,
    steps=_steps,
)
