"""What a family of questions is: a way to draw what is shown, to say it, and to know its odds.

A family never keeps the hidden parameter it drew: `latent` draws one anew from its posterior given
what is shown. The pair has the same joint law, and two equal questions are then one instance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokengym.rewards.scoring import Forecast

Shown = Mapping[str, Any]
"""Plain JSON: everything a question shows, and nothing it hides."""


@dataclass(frozen=True)
class Knobs:
    """How hard a level makes its questions.

    Attributes:
        size: 1 short, 2 medium, 3 long histories and horizons.
        stated: whether priors and rules are said, or must be learned.
        tail: chance that a threshold is moved far from what the data suggest.
    """

    size: int
    stated: bool
    tail: float


@dataclass(frozen=True)
class Family:
    """One family of synthetic questions.

    Attributes:
        name: what `family=` of the world takes.
        draw: what is shown, from a generator and the level's knobs; no field may depend on the
            hidden parameter except through shown data.
        text: the question in words.
        predictive: the posterior predictive probability of every outcome given what is shown.
        latent: the outcomes' probabilities under one hidden parameter drawn from its posterior.
        empirical: what a sensible person computes from the shown numbers, without the prior.
        labels: names of the outcomes; none for a yes/no question.
        earlier: what was shown one turn before, where the family can be asked in two turns.
        news: the words that lead from `earlier(shown)` to `shown`.
    """

    name: str
    draw: Callable[[np.random.Generator, Knobs], Shown]
    text: Callable[[Shown], str]
    predictive: Callable[[Shown], Forecast]
    latent: Callable[[Shown, np.random.Generator], Forecast]
    empirical: Callable[[Shown], Forecast]
    labels: Callable[[Shown], Sequence[str]] | None = None
    earlier: Callable[[Shown], Shown] | None = None
    news: Callable[[Shown], str] | None = None


def yes(probability: float) -> Forecast:
    """Return (no, yes) from the probability of yes, which rounding may have left just outside."""
    probability = min(1.0, max(0.0, probability))
    return (1.0 - probability, probability)


def normal_tail(z: float) -> float:
    """Return P(Z > z) of a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def number(value: float) -> str:
    """Write a parameter in the fewest digits: `0.5`, `3`."""
    return f"{value:g}"
