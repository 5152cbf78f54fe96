"""Numeric questions as thresholds: in which of several ranges will a number fall?

The ranges are ordered outcomes, three to five of them. The numbers are those of which other
families ask whether they exceed a threshold.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tokengym.envs.forecasting.families import autoregression, poisson, polls
from tokengym.envs.forecasting.families.base import Family, Shown
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_FEWEST, _MOST = 2, 4
"""Thresholds of a question."""
_SEEDS = 2**63


class Quantity(NamedTuple):
    """A number of which a family of yes/no questions asks whether it exceeds a threshold.

    Attributes:
        name: what it is called in names of families.
        family: the family, whose questions show a `threshold`.
        spread: about how far the number strays, from what is shown.
        middle: about where it lies, from what is shown.
        whole: whether it is a whole number of at least 0.
        most: the largest it can be, from what is shown.
    """

    name: str
    family: Family
    spread: Callable[[Shown], float]
    middle: Callable[[Shown], float]
    whole: bool = True
    most: Callable[[Shown], float] = lambda shown: math.inf

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


def ranges(quantity: Quantity) -> Family:
    """Return the family that asks for the range of a number."""
    family = quantity.family

    def draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
        drawn = family.draw(rng, knobs)
        facts = {name: value for name, value in drawn.items() if name != "threshold"}
        count = int(rng.integers(_FEWEST, _MOST + 1))
        return {"facts": facts, "edges": quantity.draw_edges(facts, count, rng)}

    def forecast(shown: Shown, chance: Callable[[Shown], Forecast]) -> Forecast:
        """Return the probabilities of the ranges from those of exceeding each edge."""
        tails = [chance({**shown["facts"], "threshold": edge})[1] for edge in shown["edges"]]
        bounds = [1.0, *np.minimum.accumulate(tails).tolist(), 0.0]
        return tuple(high - low for high, low in pairwise(bounds))

    def latent(shown: Shown, rng: np.random.Generator) -> Forecast:
        # A family draws its hidden parameter first: equal seeds give every edge the same one.
        seed = int(rng.integers(_SEEDS))
        return forecast(shown, lambda facts: family.latent(facts, np.random.default_rng(seed)))

    return Family(
        f"{quantity.name}_ranges",
        draw,
        predictive=lambda shown: forecast(shown, family.predictive),
        latent=latent,
        empirical=lambda shown: forecast(shown, family.empirical),
        options=lambda shown: len(shown["edges"]) + 1,
        ordered=True,
    )


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


_QUANTITIES = (
    Quantity("fault", poisson.FAMILY, lambda shown: math.sqrt(_fault_middle(shown)), _fault_middle),
    Quantity(
        "vote",
        polls.FAMILY,
        _vote_spread,
        middle=lambda shown: _vote_share(shown) * float(shown["voters"]),
        most=lambda shown: shown["voters"],
    ),
    Quantity(
        "reading",
        autoregression.FAMILY,
        spread=lambda shown: _reading_law(shown)[1],
        middle=lambda shown: float(shown["mean"]) + _reading_law(shown)[0],
        whole=False,
    ),
)
FAMILIES = tuple(map(ranges, _QUANTITIES))
