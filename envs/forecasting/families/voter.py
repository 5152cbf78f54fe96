"""Dirichlet-multinomial: of several options, which will the next voter name? A distribution."""

from collections.abc import Sequence

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_NAMES = "ABCDEF"
_STATED = (0.5, 1.0, 2.0, 4.0)
"""Each option's weight in a prior that is stated."""
_UNSTATED = 0.5


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    options = int(rng.integers(1 + knobs.size, 4 + knobs.size))
    prior = rng.choice(_STATED, size=options) if knobs.stated else np.full(options, _UNSTATED)
    shares = rng.dirichlet(prior)
    asked = int(rng.integers(8, 12 * knobs.size))
    later = None
    if knobs.staged:
        asked, later = asked // 2 + 2, rng.multinomial(int(rng.integers(12, 40)), shares)
    return {
        "counts": rng.multinomial(asked, shares),
        "later": later,
        "prior": prior,
        "stated": knobs.stated,
    }


def _seen(shown: Shown) -> list[int]:
    later = shown["later"] or [0] * len(shown["counts"])
    return [first + more for first, more in zip(shown["counts"], later, strict=True)]


def _posterior(shown: Shown) -> list[float]:
    return [weight + count for weight, count in zip(shown["prior"], _seen(shown), strict=True)]


def _predictive(shown: Shown) -> Forecast:
    return _shares(_posterior(shown))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return tuple(rng.dirichlet(_posterior(shown)).tolist())


def _empirical(shown: Shown) -> Forecast:
    return _shares(_seen(shown))


def _shares(counts: Sequence[float]) -> Forecast:
    total = sum(counts)
    return tuple(count / total for count in counts)


FAMILY = Family(
    "voter",
    "Hidden Dirichlet-distributed shares; each further voter names an option by them.",
    _draw,
    _predictive,
    _latent,
    _empirical,
    options=lambda shown: len(shown["counts"]),
)
