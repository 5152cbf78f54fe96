"""Counts a day, Poisson with a Gamma prior on the rate: will the next days bring more than c?

The predictive law of the sum of d further days is negative binomial.
"""

import math

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, number, yes
from tokengym.rewards.scoring import Forecast

_STATED = (1.0, 5.0)
_UNSTATED = (2.0, 3.0)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    shape, scale = _STATED if knobs.stated else _UNSTATED
    seen = int(rng.integers(4, 4 + 4 * knobs.size))
    ahead = 1 if knobs.size == 1 else int(rng.integers(1, 2 * knobs.size))
    counts = rng.poisson(rng.gamma(shape, scale), size=seen)
    # The threshold is a function of the counts and of chance alone: were it drawn around the
    # hidden rate, it would tell something about it and the posterior below would be wrong.
    middle = (float(counts.mean()) + 0.2) * ahead
    reach = 3.5 if rng.random() < knobs.tail else 1.5
    threshold = max(0, round(middle + reach * math.sqrt(middle) * float(rng.normal())))
    return {
        "counts": counts.tolist(),
        "ahead": ahead,
        "threshold": threshold,
        "prior": [shape, scale],
        "stated": knobs.stated,
    }


def _text(shown: Shown) -> str:
    shape, scale = shown["prior"]
    law = f"exponential, mean {number(scale)}"
    if shape != 1:
        law = f"Gamma, shape {number(shape)}, scale {number(scale)}"
    rule = f"Faults a day are Poisson; rate prior {law}. " if shown["stated"] else "Faults a day. "
    counts = " ".join(map(str, shown["counts"]))
    ahead = "tomorrow" if shown["ahead"] == 1 else f"the next {shown['ahead']} days together"
    return f"{rule}Seen: {counts}. Will {ahead} bring more than {shown['threshold']}?"


def _posterior(shown: Shown) -> tuple[float, float]:
    shape, scale = shown["prior"]
    return shape + sum(shown["counts"]), 1.0 / scale + len(shown["counts"])


def negative_binomial_tail(shape: float, odds: float, threshold: int) -> float:
    """Return P(X > threshold), X Poisson with mean odds·G and G ~ Gamma(shape, scale 1).

    Args:
        shape: shape of the Gamma law, > 0.
        odds: mean of X at G = 1, > 0.
        threshold: at least 0.
    """
    share = odds / (1.0 + odds)
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
    return yes(negative_binomial_tail(shape, shown["ahead"] / rate, shown["threshold"]))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    shape, rate = _posterior(shown)
    daily = float(rng.gamma(shape, 1.0 / rate))
    return yes(poisson_tail(daily * shown["ahead"], shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    # Half a fault more than was seen keeps a quiet history from meaning never.
    daily = (sum(shown["counts"]) + 0.5) / len(shown["counts"])
    return yes(poisson_tail(daily * shown["ahead"], shown["threshold"]))


FAMILY = Family("poisson", _draw, _text, _predictive, _latent, _empirical)
