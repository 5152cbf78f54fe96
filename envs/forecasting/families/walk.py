"""A ±1 walk: will it reach a barrier within n steps? By reflection, exactly.

Reflecting a path at its first visit to the barrier b pairs the paths that end at k < b after a
visit with those that end at 2b - k, so C(n, (n + 2b - k) / 2) paths end at k after a visit. Each
keeps its own weight, that of its ups and downs, averaged over the Beta posterior of the chance of
an up.
"""

import math
from collections.abc import Callable

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli, log_beta
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_PRIOR = (2.0, 2.0)
_STEPS = (10, 40)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    few, many = _STEPS
    steps = int(rng.integers(few, many + 1))
    moves = rng.binomial(1, rng.beta(*_PRIOR), int(rng.integers(10, 25)))
    seen = "".join("-+"[move] for move in moves)
    drift = (seen.count("+") - seen.count("-")) / len(seen)
    goal = drift * steps + math.sqrt(steps) * float(rng.normal(0.5, 1.0 + 2.0 * knobs.tail))
    return {
        "seen": seen,
        "prior": _PRIOR,
        "stated": False,
        "rise": min(steps, max(1, round(goal))),
        "steps": steps,
    }


def reach_chance(rise: int, steps: int, weight: Callable[[int, int], float]) -> float:
    """Return the chance that the walk is `rise` above its start at any time in `steps` steps.

    Args:
        rise: height of the barrier above the start, at least 1.
        steps: number of steps, at least 0.
        weight: chance of one given path, from its numbers of ups and downs.
    """
    total = 0.0
    for ups in range(steps + 1):
        downs = steps - ups
        mirrored = ups if ups - downs >= rise else downs + rise
        if mirrored <= steps:
            total += math.comb(steps, mirrored) * weight(ups, downs)
    return total


def _known(up: float) -> Callable[[int, int], float]:
    return lambda ups, downs: float(up**ups * (1.0 - up) ** downs)


def _learned(a: float, b: float) -> Callable[[int, int], float]:
    """Return the Beta(a, b) mean of p^ups (1 - p)^downs, a ratio of Beta functions."""
    base = log_beta(a, b)
    return lambda ups, downs: math.exp(log_beta(a + ups, b + downs) - base)


def _posterior(shown: Shown) -> tuple[float, float]:
    a, b = shown["prior"]
    return a + shown["seen"].count("+"), b + shown["seen"].count("-")


def _predictive(shown: Shown) -> Forecast:
    return bernoulli(reach_chance(shown["rise"], shown["steps"], _learned(*_posterior(shown))))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    up = float(rng.beta(*_posterior(shown)))
    return bernoulli(reach_chance(shown["rise"], shown["steps"], _known(up)))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds by Brownian motion with drift, which needs no sum over paths."""
    up = (shown["seen"].count("+") + 0.5) / (len(shown["seen"]) + 1.0)
    drift = 2.0 * up - 1.0
    variance = 1.0 - drift * drift
    return bernoulli(brownian_reach(shown["rise"], shown["steps"], drift, variance))


def brownian_reach(rise: float, time: float, drift: float, variance: float) -> float:
    """Return the chance that Brownian motion with drift reaches `rise` > 0 by `time` > 0."""
    spread = math.sqrt(2.0 * variance * time)
    direct = 0.5 * math.erfc((rise - drift * time) / spread)
    exponent = 2.0 * drift * rise / variance
    mirrored = 0.5 * math.erfc((rise + drift * time) / spread)
    return direct if mirrored == 0.0 else direct + math.exp(exponent + math.log(mirrored))


FAMILY = Family(
    "walk",
    "Each step goes up at one hidden Beta-distributed rate, else down.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
