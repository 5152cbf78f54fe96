"""Questions on a law that nobody knows: each draws one anew, and resolved cases show it.

A question states which laws there are, all equally likely, and how often a case departs from its
law. The posterior sums over every law, exactly. A family asks for one case to come, its twins five
questions on two cases, which depend on each other through the law.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.arrays import Flags, Floats
from tokengym.rewards.scoring import Forecast

ERRORS = (2, 5, 10)
"""Chances in per cent that a case departs from its law."""

_AS_LIKELY = 0.999

_YES = {"first": (2, 3), "not_first": (0, 1), "second": (1, 3), "both": (3,), "either": (1, 2, 3)}
"""By question on two cases the states in which its answer is yes; 2·x + y is that of x and y."""


class Posterior(NamedTuple):
    """Posterior over the law.

    Attributes:
        weights_L: the posterior probability of each law, shape (laws,).
        chances_LC: under each law the chance of yes in each case asked about, shape (laws, cases).
    """

    weights_L: Floats
    chances_LC: Floats


def weigh(verdicts_LD: Flags, seen_D: Sequence[int], error: float) -> Floats:
    """Return the posterior of equally likely laws.

    Args:
        verdicts_LD: what each law says of each resolved case, shape (laws, cases).
        seen_D: 1 where the case was resolved with yes, 0 with no, shape (cases,).
        error: chance in (0, 1) that a case departs from the law, each independently.
    """
    misses_L = (verdicts_LD != np.array(seen_D, bool)).sum(axis=1)
    weights_L: Floats = (error / (1.0 - error)) ** misses_L
    weights_L /= weights_L.sum()
    return weights_L


class LawKind(NamedTuple):
    """A kind of law.

    Attributes:
        name: what its family is called.
        law: how a law is drawn and what departs from it, in one sentence.
        draw: the facts, from a generator, the level's knobs and the number of cases asked about.
        posterior: what the facts say of the law.
        empirical: chances of yes by case that a sensible person reads off, law by law untried.
        cues: further numbers that speak for yes in the first case, for a regression.
    """

    name: str
    law: str
    draw: Callable[[np.random.Generator, Knobs, int], Shown]
    posterior: Callable[[Shown], Posterior]
    empirical: Callable[[Shown], Sequence[float]]
    cues: Callable[[Shown], Sequence[float]]

    def draw_law(self, shown: Shown, rng: np.random.Generator) -> Floats:
        """Return the chances of yes by case under a law drawn from its posterior."""
        weights_L, chances_LC = self.posterior(shown)
        chances_C: Floats = chances_LC[rng.choice(len(weights_L), p=weights_L)]
        return chances_C

    def likeliest(self, shown: Shown) -> Floats:
        """Return the chances of yes by case of the laws that explain most, on average."""
        weights_L, chances_LC = self.posterior(shown)
        chances_C: Floats = chances_LC[weights_L > _AS_LIKELY * weights_L.max()].mean(axis=0)
        return chances_C


def question(kind: LawKind) -> Family:
    """Return the family that asks for the next case."""

    def predictive(shown: Shown) -> Forecast:
        weights_L, chances_LC = kind.posterior(shown)
        return bernoulli(float(weights_L @ chances_LC[:, 0]))

    return Family(
        kind.name,
        kind.law,
        lambda rng, knobs: kind.draw(rng, knobs, 1),
        predictive,
        latent=lambda shown, rng: bernoulli(float(kind.draw_law(shown, rng)[0])),
        empirical=lambda shown: bernoulli(kind.empirical(shown)[0]),
        cues=kind.cues,
        likeliest=lambda shown: bernoulli(float(kind.likeliest(shown)[0])),
    )


def twins(kind: LawKind) -> Family:
    """Return the family that asks five questions on the next two cases, in any order."""

    def draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
        facts = kind.draw(rng, knobs, 2)
        return {"facts": facts, "order": [list(_YES)[i] for i in rng.permutation(len(_YES))]}

    def predictive(shown: Shown) -> Forecast:
        weights_L, chances_LC = kind.posterior(shown["facts"])
        return tuple((weights_L @ _states(*chances_LC.T)).tolist())

    return Family(
        f"twin_{kind.name}",
        kind.law,
        draw,
        predictive,
        latent=lambda shown, rng: tuple(_states(*kind.draw_law(shown["facts"], rng)).tolist()),
        empirical=lambda shown: tuple(_states(*kind.empirical(shown["facts"])).tolist()),
        likeliest=lambda shown: tuple(_states(*kind.likeliest(shown["facts"])).tolist()),
        options=lambda shown: 4,
        events=lambda shown: tuple(_YES[name] for name in shown["order"]),
        split_key=lambda shown: shown["facts"],
    )


def _states(first: npt.ArrayLike, second: npt.ArrayLike) -> Floats:
    """Return the chances of the four states of two cases that are independent given the law."""
    x, y = np.asarray(first, np.float64), np.asarray(second, np.float64)
    return np.stack([(1.0 - x) * (1.0 - y), (1.0 - x) * y, x * (1.0 - y), x * y], axis=-1)
