"""Beta-binomial: several sources with success counts; will the next try of one of them succeed?"""

from collections.abc import Sequence

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, number, yes
from tokengym.rewards.scoring import Forecast

_NAMES = "ABCDE"
_SOURCES = {1: 2, 2: 4, 3: 5}
_TRIES = {1: (10, 40), 2: (6, 60), 3: (3, 80)}
_U_SHAPED = (0.5, 0.5)
_RARE = (0.4, 1.2)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    sources = _SOURCES[knobs.size]
    prior = _U_SHAPED if knobs.stated else _RARE
    rates = rng.beta(*prior, size=sources)
    few, many = _TRIES[knobs.size]
    tries = rng.integers(few, many + 1, size=sources)
    later = None
    if knobs.staged:
        tries = rng.integers(2, 9, size=sources)
        more = rng.integers(few, many + 1, size=sources)
        later = {"hits": rng.binomial(more, rates), "tries": more}
    return {
        "hits": rng.binomial(tries, rates),
        "tries": tries,
        "later": later,
        "asked": int(rng.integers(sources)),
        "prior": prior,
        "stated": knobs.stated,
    }


def _text(shown: Shown) -> str:
    prior = "Rates ~ Beta({}, {}). ".format(*map(number, shown["prior"])) if shown["stated"] else ""
    asked = _NAMES[shown["asked"]]
    counts = _counts(shown["hits"], shown["tries"])
    return f"{prior}Successes so far: {counts}. Will the next try of {asked} succeed?"


def _news(shown: Shown) -> str:
    return f"Further tries: {_counts(shown['later']['hits'], shown['later']['tries'])}."


def _counts(hits: Sequence[int], tries: Sequence[int]) -> str:
    return ", ".join(f"{name} {k} of {n}" for name, k, n in zip(_NAMES, hits, tries, strict=False))


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
    return yes(a / (a + b))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return yes(float(rng.beta(*_posterior(shown))))


def _empirical(shown: Shown) -> Forecast:
    hits, tries = _seen(shown)
    return yes(hits / tries)


FAMILY = Family("frequency", _draw, _text, _predictive, _latent, _empirical, news=_news)
