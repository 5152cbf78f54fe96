"""Polls before a vote of n others: does A get more than half? A Beta-binomial tail."""

import math

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Shown, bernoulli, log_beta, normal_tail
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.scoring import Forecast

_STATED = (1.0, 2.0, 4.0, 8.0)
"""Either parameter of a prior that is stated."""
_UNSTATED = (4.0, 2.0)


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    a, b = rng.choice(_STATED, size=2).tolist() if knobs.stated else _UNSTATED
    support = rng.beta(a, b)
    asked = rng.integers(4, 10 * knobs.size, size=knobs.size)
    later = None
    if knobs.staged:
        asked, more = asked[:1], rng.integers(20, 60, size=1)
        later = {"asked": more, "for": rng.binomial(more, support)}
    return {
        "asked": asked,
        "for": rng.binomial(asked, support),
        "later": later,
        "voters": 2 * int(rng.integers(2, 60 * knobs.size)) + 1,
        "prior": (a, b),
        "stated": knobs.stated,
    }


def _seen(shown: Shown) -> tuple[int, int]:
    parts = [shown] if shown["later"] is None else [shown, shown["later"]]
    return sum(sum(part["for"]) for part in parts), sum(sum(part["asked"]) for part in parts)


def beta_binomial_tail(a: float, b: float, tries: int, threshold: int) -> float:
    """Return P(X > threshold) of X ~ Binomial(tries, P), P ~ Beta(a, b)."""
    base = log_beta(a, b)
    return math.fsum(
        math.comb(tries, x) * math.exp(log_beta(a + x, b + tries - x) - base)
        for x in range(threshold + 1, tries + 1)
    )


def _posterior(shown: Shown) -> tuple[float, float]:
    a, b = shown["prior"]
    votes, asked = _seen(shown)
    return a + votes, b + asked - votes


def _threshold(shown: Shown) -> int:
    """Return the votes to be exceeded: half of them, where a question states no other number."""
    threshold: int = shown.get("threshold", shown["voters"] // 2)
    return threshold


def _predictive(shown: Shown) -> Forecast:
    return bernoulli(beta_binomial_tail(*_posterior(shown), shown["voters"], _threshold(shown)))


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    support = float(rng.beta(*_posterior(shown)))
    return bernoulli(binomial_tail(support, shown["voters"], _threshold(shown)))


def binomial_tail(support: float, voters: int, threshold: int) -> float:
    """Return the chance that more than `threshold` of `voters` vote for it, each with `support`."""
    return math.fsum(
        math.comb(voters, x) * support**x * (1.0 - support) ** (voters - x)
        for x in range(threshold + 1, voters + 1)
    )


def _empirical(shown: Shown) -> Forecast:
    """Return the odds that enough vote for it, by the normal error of the polls."""
    votes, asked = _seen(shown)
    share = (votes + 1.0) / (asked + 2.0)
    error = math.sqrt(share * (1.0 - share) * (1.0 / asked + 1.0 / shown["voters"]))
    needed = (_threshold(shown) + 0.5) / shown["voters"]
    return bernoulli(normal_tail((needed - share) / error))


FAMILY = Family(
    "polls",
    "A hidden Beta-distributed share favours A; polls and votes are binomial at it.",
    _draw,
    _predictive,
    _latent,
    _empirical,
)
