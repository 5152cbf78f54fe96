"""Numbers whose thresholds families ask about, for other questions on the same facts."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tokengym.envs.forecasting.families import autoregression, poisson, polls
from tokengym.envs.forecasting.families.base import Family, Knobs, Shown
from tokengym.rewards.scoring import Forecast

_SEEDS = 2**63


class Quantity(NamedTuple):
    """A number of which a family of yes/no questions asks whether it exceeds a threshold.

    Attributes:
        name: what it is called in names of families.
        family: the family, whose questions show a `threshold`.
        how_many: the question for the number itself.
        spread: about how far the number strays, from what is shown.
        middle: about where it lies, from what is shown.
        whole: whether it is a whole number of at least 0.
        most: the largest it can be, from what is shown.
    """

    name: str
    family: Family
    how_many: Callable[[Shown], str]
    spread: Callable[[Shown], float]
    middle: Callable[[Shown], float]
    whole: bool = True
    most: Callable[[Shown], float] = lambda shown: math.inf

    def draw(self, rng: np.random.Generator, knobs: Knobs) -> Shown:
        """Draw the facts, without a threshold."""
        shown = self.family.draw(rng, knobs)
        return {name: value for name, value in shown.items() if name != "threshold"}

    def draw_edges(self, shown: Shown, count: int, rng: np.random.Generator) -> list[int]:
        """Draw `count` ascending thresholds around where the number may lie.

        They depend on what is shown and on chance alone, and so say nothing more about the number.
        """
        spread = max(1.0, self.spread(shown))
        step = round(spread * float(rng.uniform(0.4, 1.2)))
        step = int(max(1, min(step, self.most(shown) // count)))
        centre = self.middle(shown) + 0.7 * spread * float(rng.normal())
        lowest = round(centre - 0.5 * step * (count - 1))
        if self.whole:
            lowest = int(max(0, min(lowest, self.most(shown) - 1 - step * (count - 1))))
        return [lowest + step * place for place in range(count)]

    def facts(self, shown: Shown, prompt: str) -> str:
        """Return the family's words without its own question."""
        text = self.family.text({**shown, "threshold": 0}, prompt)
        mark = " Question: " if prompt == "full" else " Will "
        return text.rpartition(mark)[0]

    def predictive(self, shown: Shown, edges: Sequence[int]) -> Forecast:
        """Return the posterior predictive probabilities of the ranges between `edges`."""
        return _ranges([self.family.predictive(_at(shown, edge))[1] for edge in edges])

    def empirical(self, shown: Shown, edges: Sequence[int]) -> Forecast:
        """Return the sensible forecast of the ranges between `edges`."""
        return _ranges([self.family.empirical(_at(shown, edge))[1] for edge in edges])

    def latent(self, shown: Shown, edges: Sequence[int], rng: np.random.Generator) -> Forecast:
        """Return the ranges' probabilities under one hidden parameter."""
        # A family draws its hidden parameter first: equal seeds give every edge the same one.
        seed = int(rng.integers(_SEEDS))
        return _ranges(
            [self.family.latent(_at(shown, edge), np.random.default_rng(seed))[1] for edge in edges]
        )

    def name_ranges(self, edges: Sequence[int]) -> list[str]:
        """Return the names of the ranges, from the lowest."""
        names = [f"at most {edges[0]}"]
        for low, high in pairwise(edges):
            if not self.whole:
                names.append(f"above {low}, at most {high}")
            else:
                names.append(f"{low + 1}" if high == low + 1 else f"{low + 1} to {high}")
        return [*names, f"more than {edges[-1]}" if self.whole else f"above {edges[-1]}"]


def _at(shown: Shown, edge: int) -> Shown:
    return {**shown, "threshold": edge}


def _ranges(tails: Sequence[float]) -> Forecast:
    """Return the probabilities of ranges from those of exceeding each edge."""
    bounds = [1.0, *np.minimum.accumulate(tails).tolist(), 0.0]
    return tuple(high - low for high, low in pairwise(bounds))


def _fault_middle(shown: Shown) -> float:
    return (sum(shown["counts"]) / len(shown["counts"]) + 0.2) * float(shown["ahead"])


def _vote_share(shown: Shown) -> float:
    return (float(sum(shown["for"])) + 1.0) / (float(sum(shown["asked"])) + 2.0)


def _vote_spread(shown: Shown) -> float:
    share, voters = _vote_share(shown), float(shown["voters"])
    return voters * math.sqrt(share * (1.0 - share) * (1.0 / voters + 1.0 / sum(shown["asked"])))


def _reading_law(shown: Shown) -> tuple[float, float]:
    pull, noise = shown["known"]
    now = float(shown["series"][-1] - shown["mean"])
    return autoregression.ahead_law(now, pull, noise, shown["ahead"])


FAULTS = Quantity(
    "fault",
    poisson.FAMILY,
    how_many=lambda shown: f"How many faults will {poisson.days_ahead(shown)} bring?",
    spread=lambda shown: math.sqrt(_fault_middle(shown)),
    middle=_fault_middle,
)
VOTES = Quantity(
    "vote",
    polls.FAMILY,
    how_many=lambda shown: f"How many of the {shown['voters']} others will vote for A?",
    spread=_vote_spread,
    middle=lambda shown: _vote_share(shown) * float(shown["voters"]),
    most=lambda shown: shown["voters"],
)
READINGS = Quantity(
    "reading",
    autoregression.FAMILY,
    how_many=lambda shown: f"How high will it be {autoregression.when_asked(shown)}?",
    spread=lambda shown: _reading_law(shown)[1],
    middle=lambda shown: float(shown["mean"]) + _reading_law(shown)[0],
    whole=False,
)
