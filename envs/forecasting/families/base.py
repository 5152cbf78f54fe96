"""A family of questions: functions that draw the facts, word them, and compute the odds.

A family never keeps the hidden parameter it drew: `latent` draws another from its posterior given
what is shown. The pair has the same joint law, and two equal questions are then one instance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tokengym.rewards.scoring import Forecast

Shown = Mapping[str, Any]
"""Plain JSON: everything a question shows, and nothing it hides.

`later`, if it is there and not `None`, holds the data that only the second of two turns reveals.
"""


@dataclass(frozen=True)
class Knobs:
    """The difficulty of a level's questions.

    Attributes:
        size: 1 short, 2 medium, 3 long histories and horizons.
        stated: whether priors and hidden rules are stated, or must be learned from many questions.
        tail: chance that a threshold is moved far from what the data suggest.
        staged: whether part of the data is kept for a second turn.
    """

    size: int
    stated: bool = True
    tail: float = 0.2
    staged: bool = False


class Wording(NamedTuple):
    """The words of a family.

    Attributes:
        text: the question, without `later`.
        news: the words for `later`; `None` where the family cannot be asked in two turns.
        more: the further questions of a family that asks several on the same facts.
    """

    text: Callable[[Shown], str]
    news: Callable[[Shown], str] | None = None
    more: Callable[[Shown], Sequence[str]] | None = None


def before_news(shown: Shown) -> Shown:
    """Return what the first of two turns shows."""
    return {**shown, "later": None}


@dataclass(frozen=True)
class Family:
    """One family of synthetic questions.

    Attributes:
        name: what `family=` of the world takes.
        draw: what is shown, from a generator and the level's knobs. No field may depend on the
            hidden parameter except through data that are shown, or the odds would be wrong.
        predictive: the posterior predictive probability of every outcome given what is shown.
        latent: the outcomes' probabilities under one hidden parameter drawn from its posterior.
        empirical: the forecast a sensible person computes from what is shown, without the prior.
        full: the question in sentences.
        terse: the question in few words.
        options: how many outcomes there are, called A, B, C, ...; `None` for a yes/no question.
        split_key: plain JSON that is the same for questions that must not come apart in a split:
            what is shown first, by default.
        ordered: whether the outcomes are in order.
        steps: arithmetic that leads to about what `empirical` says, in one line, small enough for
            a small model to learn; `None` where nobody has written it down.
        events: of a family that asks several yes/no questions on the same facts, by question the
            outcomes in which its answer is yes.
    """

    name: str
    draw: Callable[[np.random.Generator, Knobs], Shown]
    predictive: Callable[[Shown], Forecast]
    latent: Callable[[Shown, np.random.Generator], Forecast]
    empirical: Callable[[Shown], Forecast]
    full: Wording
    terse: Wording
    options: Callable[[Shown], int] | None = None
    split_key: Callable[[Shown], object] = before_news
    ordered: bool = False
    steps: Callable[[Shown], str] | None = None
    events: Callable[[Shown], Sequence[Sequence[int]]] | None = None

    def wording(self, prompt: str) -> Wording:
        """Return the words for a world's `prompt`, `full` or `terse`."""
        return self.full if prompt == "full" else self.terse


def bernoulli(probability: float) -> Forecast:
    """Return (no, yes) from the probability of yes, which rounding may have left just outside."""
    probability = min(1.0, max(0.0, probability))
    return (1.0 - probability, probability)


def normal_tail(z: float) -> float:
    """Return P(Z > z) of a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def number(value: float) -> str:
    """Write a parameter in the fewest digits: `0.5`, `3`."""
    return f"{value:g}"


def counted(count: int, noun: str) -> str:
    """Write a number of things: `1 hour`, `3 hours`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def spread_out(rng: np.random.Generator, knobs: Knobs) -> float:
    """Draw how many standard deviations a threshold lies from the middle of the data."""
    reach = 3.0 if rng.random() < knobs.tail else 1.3
    return reach * float(rng.normal())
