"""A family of questions: functions that draw the facts and compute the odds; templates word them.

A family never keeps the hidden parameter it drew: `latent` draws another from its posterior given
what is shown. The pair has the same joint law, and two equal questions are then one instance.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tokengym.envs.core.errors import OptionError
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

Shown = Mapping[str, Any]
"""Plain JSON: everything a question shows, and nothing it hides.

`later`, if it is there and not `None`, holds the data that only the second of two turns reveals.
"""


def before_news(shown: Shown) -> Shown:
    """Return the facts that the first of two turns shows."""
    return {**shown, "later": None}


@dataclass(frozen=True)
class Family:
    """One family of synthetic questions; each prompt has a macro of its name, which words it.

    Attributes:
        name: what `family=` of the world takes.
        law: how the hidden parameter and then the future are drawn, in one sentence. A family
            without one is not accepted; `tests/forecasting/test_joint_law.py` simulates it.
        draw: what is shown, from a generator and the level's knobs. No field may depend on the
            hidden parameter except through data that are shown, or the odds would be wrong.
        predictive: the posterior predictive probability of every outcome given what is shown.
        latent: the outcomes' probabilities under one hidden parameter drawn from its posterior.
        empirical: the forecast a sensible person computes from what is shown, without the prior.
        options: how many outcomes there are, called A, B, C, ...; `None` for a yes/no question.
        split_key: plain JSON that is the same for questions that must not come apart in a split:
            what is shown first, by default.
        steps: arithmetic that leads to about what `empirical` says, in one line, small enough for
            a small model to learn; `None` where nobody has written it down.
        cues: further numbers that may speak for yes, for a regression on resolved questions, as
            many in every question of the family; `None` where `empirical` says it all.
        events: of a family that asks several yes/no questions on the same facts, each in a turn of
            its own, by question the outcomes in which its answer is yes.
        likeliest: the forecast by the law alone that explains most of what is shown; `None` where
            the family has no law to find.
    """

    name: str
    law: str
    draw: Callable[[np.random.Generator, Knobs], Shown]
    predictive: Callable[[Shown], Forecast]
    latent: Callable[[Shown, np.random.Generator], Forecast]
    empirical: Callable[[Shown], Forecast]
    options: Callable[[Shown], int] | None = None
    split_key: Callable[[Shown], object] = before_news
    steps: Callable[[Shown], str] | None = None
    cues: Callable[[Shown], Sequence[float]] | None = None
    events: Callable[[Shown], Sequence[Sequence[int]]] | None = None
    likeliest: Callable[[Shown], Forecast] | None = None

    def __post_init__(self) -> None:
        """Refuse a family without a law.

        Raises:
            OptionError: naming the family.
        """
        if not self.law.endswith("."):
            raise OptionError(f"the family {self.name!r} needs its law as a sentence")


def bernoulli(probability: float) -> Forecast:
    """Return (no, yes) from the probability of yes, which rounding may have left just outside."""
    probability = min(1.0, max(0.0, probability))
    return (1.0 - probability, probability)


def normalise(logs: Sequence[float]) -> list[float]:
    """Return weights that sum to 1 from their logarithms, known up to a constant."""
    top = max(logs)
    weights = [math.exp(log - top) for log in logs]
    return [weight / sum(weights) for weight in weights]


def log_beta(x: float, y: float) -> float:
    """Return the logarithm of the Beta function."""
    return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)


def normal_tail(z: float) -> float:
    """Return P(Z > z) of a standard normal Z."""
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def spread_out(rng: np.random.Generator, knobs: Knobs) -> float:
    """Draw how many standard deviations a threshold lies from the middle of the data."""
    reach = 3.0 if rng.random() < knobs.tail else 1.3
    return reach * float(rng.normal())
