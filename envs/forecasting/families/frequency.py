"""Beta-binomial: several sources with success counts; will the next try of one of them succeed?"""

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, number, yes
from tokengym.rewards.scoring import Forecast

_NAMES = "ABCDE"
_U_SHAPED = (0.5, 0.5)
_RARE = (0.4, 1.2)
_SOURCES = {1: 2, 2: 4, 3: 5}


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    sources = _SOURCES[knobs.size]
    low, high = (10, 40) if knobs.size == 1 else (4, 60)
    prior = _U_SHAPED if knobs.stated else _RARE
    tries = rng.integers(low, high + 1, size=sources)
    return {
        "hits": rng.binomial(tries, rng.beta(*prior, size=sources)).tolist(),
        "tries": tries.tolist(),
        "asked": int(rng.integers(sources)),
        "prior": list(prior),
        "stated": knobs.stated,
    }


def _text(shown: Shown) -> str:
    prior = "Rates ~ Beta({}, {}). ".format(*map(number, shown["prior"])) if shown["stated"] else ""
    counts = ", ".join(
        f"{name} {k} of {n}"
        for name, k, n in zip(_NAMES, shown["hits"], shown["tries"], strict=False)
    )
    asked = _NAMES[shown["asked"]]
    return f"{prior}Successes so far: {counts}. Will the next try of {asked} succeed?"


def _posterior(shown: Shown) -> tuple[float, float]:
    a, b = shown["prior"]
    k, n = shown["hits"][shown["asked"]], shown["tries"][shown["asked"]]
    return a + k, b + n - k


def _predictive(shown: Shown) -> Forecast:
    a, b = _posterior(shown)
    return yes(a / (a + b))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return yes(float(rng.beta(*_posterior(shown))))


def _empirical(shown: Shown) -> Forecast:
    return yes(shown["hits"][shown["asked"]] / shown["tries"][shown["asked"]])


FAMILY = Family("frequency", _draw, _text, _predictive, _latent, _empirical)
