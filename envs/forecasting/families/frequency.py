"""Beta-binomial: several sources with success counts; will the next try of one of them succeed?"""

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_NAMES = "ABCDE"
_SOURCES = {1: 2, 2: 4, 3: 5}
_TRIES = {1: (4, 20), 2: (3, 30), 3: (2, 40)}
_STATED = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
"""Either parameter of a prior that is stated."""
_UNSTATED = (0.6, 2.4)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    sources = _SOURCES[knobs.size]
    a, b = rng.choice(_STATED, size=2).tolist() if knobs.stated else _UNSTATED
    rates = rng.beta(a, b, size=sources)
    few, many = _TRIES[knobs.size]
    tries = rng.integers(few, many + 1, size=sources)
    later = None
    if knobs.staged:
        tries = rng.integers(1, 6, size=sources)
        more = rng.integers(few, many + 1, size=sources)
        later = {"hits": rng.binomial(more, rates), "tries": more}
    return {
        "hits": rng.binomial(tries, rates),
        "tries": tries,
        "later": later,
        "asked": int(rng.integers(sources)),
        "prior": (a, b),
        "stated": knobs.stated,
    }


def _seen(shown: Shown) -> tuple[int, int]:
    """Return the successes and tries of the source that is asked about."""
    parts = [shown] if shown["later"] is None else [shown, shown["later"]]
    asked = shown["asked"]
    return sum(part["hits"][asked] for part in parts), sum(part["tries"][asked] for part in parts)


def _posterior(shown: Shown) -> tuple[float, float]:
    a, b = shown["prior"]
    hits, tries = _seen(shown)
    return a + hits, b + tries - hits


def _predictive(shown: Shown) -> Forecast:
    a, b = _posterior(shown)
    return bernoulli(a / (a + b))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return bernoulli(float(rng.beta(*_posterior(shown))))


def _empirical(shown: Shown) -> Forecast:
    hits, tries = _seen(shown)
    return bernoulli(hits / tries)


def _steps(shown: Shown) -> str:
    hits, tries = _seen(shown)
    return f"{_NAMES[shown['asked']]} {hits} of {tries}"


FAMILY = Family(
    "frequency",
    "Each source has a hidden Beta-distributed success rate; the next try succeeds at that rate.",
    _draw,
    _predictive,
    _latent,
    _empirical,
    steps=_steps,
)
