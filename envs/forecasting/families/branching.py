"""A branching process: will a line have died out after g generations?

With f the generating function of the offspring of one cell, the chance is f(f(...f(0)))^k with f
applied g times, k cells at the start (Galton and Watson 1875).
"""

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_PARTS = 100
_MOST_CELLS, _MOST_GENERATIONS = 12, 20


def _draw(rng: np.random.Generator, _knobs: Knobs) -> Shown:
    # No line is sure to die out, or to live.
    offspring = rng.multinomial(_PARTS - 2, rng.dirichlet([1.0, 1.0, 1.0, 0.5]))
    offspring[[0, 2]] += 1
    return {
        "hundredths": offspring,
        "cells": int(rng.integers(1, _MOST_CELLS + 1)),
        "generations": int(rng.integers(1, _MOST_GENERATIONS + 1)),
    }


def _predictive(shown: Shown) -> Forecast:
    none, one, two, three = (part / _PARTS for part in shown["hundredths"])
    extinct = 0.0
    for _ in range(shown["generations"]):
        extinct = none + extinct * (one + extinct * (two + extinct * three))
    return bernoulli(float(extinct ** shown["cells"]))


def _latent(shown: Shown, _rng: np.random.Generator) -> Forecast:
    return _predictive(shown)


def _empirical(shown: Shown) -> Forecast:
    """Return the odds if each generation were of its expected size and died out by chance."""
    none, one, two, three = (part / _PARTS for part in shown["hundredths"])
    expected, alive = float(shown["cells"]), 1.0
    for _ in range(shown["generations"]):
        alive *= 1.0 - none ** max(1.0, expected)
        expected *= one + 2.0 * two + 3.0 * three
    return bernoulli(1.0 - alive)


FAMILY = Family(
    "branching",
    "Each cell leaves 0 to 3 cells by stated chances, independently, in each generation.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
