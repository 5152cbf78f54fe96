"""Dirichlet-multinomial: of several options, which will the next voter name? A distribution."""

from collections.abc import Sequence

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown
from tokengym.rewards.scoring import Forecast

_NAMES = "ABCDEF"
_UNIFORM = 1.0
_PEAKED = 0.7


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    options = int(rng.integers(3, 4 + knobs.size))
    prior = _UNIFORM if knobs.stated else _PEAKED
    shares = rng.dirichlet([prior] * options)
    asked = int(rng.integers(6, 20 * knobs.size))
    later = None
    if knobs.staged:
        asked, later = asked // 3 + 1, rng.multinomial(int(rng.integers(12, 40)), shares)
    return {
        "counts": rng.multinomial(asked, shares),
        "later": later,
        "prior": prior,
        "stated": knobs.stated,
    }


def _options(shown: Shown) -> int:
    return len(shown["counts"])


def _text(shown: Shown) -> str:
    prior = "All splits are equally likely beforehand. " if shown["stated"] else ""
    return f"{prior}Named so far: {_counts(shown['counts'])}. Which will the next one name?"


def _news(shown: Shown) -> str:
    return f"Named since: {_counts(shown['later'])}."


def _counts(counts: Sequence[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(_NAMES, counts, strict=False))


def _seen(shown: Shown) -> list[int]:
    later = shown["later"] or [0] * len(shown["counts"])
    return [first + more for first, more in zip(shown["counts"], later, strict=True)]


def _predictive(shown: Shown) -> Forecast:
    return _shares([count + shown["prior"] for count in _seen(shown)])


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    posterior = [count + shown["prior"] for count in _seen(shown)]
    return tuple(rng.dirichlet(posterior).tolist())


def _empirical(shown: Shown) -> Forecast:
    return _shares(_seen(shown))


def _shares(counts: Sequence[float]) -> Forecast:
    total = sum(counts)
    return tuple(count / total for count in counts)


FAMILY = Family(
    "voter",
    _draw,
    _text,
    _predictive,
    _latent,
    _empirical,
    options=_options,
    news=_news,
)
