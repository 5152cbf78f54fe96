"""Forecasters of differing reliability say whether something will happen; one may copy another.

How often each is right is fixed and unstated (`sources`). Given the truth they err independently:
the odds are the base rate's odds times r / (1 - r) for each that says yes, and times its inverse
for each that says no. A copy adds nothing.
"""

import math

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, bernoulli
from tokengym.envs.forecasting.families.sources import RELIABILITY, draw_sources
from tokengym.rewards.scoring import Forecast

_BASE_RATES = (30, 70)
_COPIES = 0.5
_TRUST = 0.5
"""Weight of a voice in log-odds, where nothing is known of its owner."""


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    count = int(rng.integers(knobs.size, 2 * knobs.size + 1))
    names = draw_sources(rng, count + 1)
    base = int(rng.integers(_BASE_RATES[0], _BASE_RATES[1] + 1))
    truth = rng.random() < base / 100.0
    right = rng.random(count) < [RELIABILITY[name] for name in names[:count]]
    return {
        "base": base,
        "names": names[:count],
        "says": right == truth,
        "copy": [names[count], int(rng.integers(count))] if rng.random() < _COPIES else None,
    }


def _text(shown: Shown) -> str:
    says = ", ".join(f"{name} {answer}" for name, answer in _answers(shown))
    return f"Base rate {shown['base']}%. They say: {says}.{_copy(shown)} Will it happen?"


def _full_text(shown: Shown) -> str:
    says = ", ".join(f"{name} says {answer}" for name, answer in _answers(shown))
    return (
        f"Events of this kind happen in {shown['base']}% of cases. Some people, each right more or "
        f"less often, were asked whether this one will happen: {says}.{_copy(shown)} "
        "Question: Will it happen?"
    )


def _answers(shown: Shown) -> list[tuple[str, str]]:
    says = [
        (name, "yes" if said else "no")
        for name, said in zip(shown["names"], shown["says"], strict=True)
    ]
    if shown["copy"] is not None:
        name, source = shown["copy"]
        says.append((name, says[source][1]))
    return says


def _copy(shown: Shown) -> str:
    if shown["copy"] is None:
        return ""
    name, source = shown["copy"]
    return f" {name} only repeats what {shown['names'][source]} says."


def _predictive(shown: Shown) -> Forecast:
    odds = shown["base"] / (100.0 - shown["base"])
    for name, said in zip(shown["names"], shown["says"], strict=True):
        ratio = RELIABILITY[name] / (1.0 - RELIABILITY[name])
        odds *= ratio if said else 1.0 / ratio
    return bernoulli(odds / (1.0 + odds))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    """Draw the hidden truth itself from its posterior."""
    return bernoulli(float(rng.random() < _predictive(shown)[1]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds if all who do not copy were equally reliable, and mostly right."""
    says = shown["says"]
    base = math.log(shown["base"] / (100.0 - shown["base"]))
    return bernoulli(1.0 / (1.0 + math.exp(-base - _TRUST * (2 * sum(says) - len(says)))))


FAMILY = Family("witnesses", _draw, _predictive, _latent, _empirical, full=_full_text, terse=_text)
