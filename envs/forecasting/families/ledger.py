"""A long report in which people of differing reliability contradict each other.

Faults a day at a plant are Poisson with a Gamma prior on the rate. Every day two people each report
a number: the true one with the chance of `sources`, else one drawn blindly. The posterior sums over
what may be true of each day: the first report, the second, or neither.
"""

import math
from collections import defaultdict
from itertools import product
from typing import NamedTuple

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown, bernoulli, counted
from tokengym.envs.forecasting.families.poisson import negative_binomial_tail, poisson_tail
from tokengym.envs.forecasting.families.sources import RELIABILITY, draw_sources
from tokengym.rewards.scoring import Forecast

_PLANTS = ("Alder", "Birch", "Cedar", "Elm", "Hazel", "Larch", "Maple", "Rowan", "Spruce", "Yew")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday")
_REPORTERS = 2
_SHAPE, _MEAN = 1.5, 8.0
_BLIND_NUMBERS = 31
"""A number drawn blindly is any from 0 to 30, all alike."""


class Totals(NamedTuple):
    """What is known of a plant's true counts: their sum, and the number of days known."""

    faults: int
    days: int


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    plants = [_PLANTS[i] for i in rng.choice(len(_PLANTS), size=knobs.size, replace=False)]
    days = int(rng.integers(2, len(_DAYS) + 1))
    rates = rng.gamma(_SHAPE, _MEAN / _SHAPE, size=len(plants))
    reports = []
    for day in range(days):
        for plant, rate in enumerate(rates):
            true = int(rng.poisson(rate))
            for name in draw_sources(rng, _REPORTERS):
                right = rng.random() < RELIABILITY[name]
                number = true if right else int(rng.integers(_BLIND_NUMBERS))
                reports.append([name, day, plant, number])
    rng.shuffle(reports)
    return {
        "plants": plants,
        "reports": reports,
        "asked": int(rng.integers(len(plants))),
        "threshold": int(rng.integers(1, 16)),
    }


def _text(shown: Shown) -> str:
    lines = " ".join(f"{name}: {plant} {day} {n}." for name, day, plant, n in _lines(shown))
    return f"Reports of faults. {lines} Will {_asked(shown)} the next day?"


def _full_text(shown: Shown) -> str:
    lines = " ".join(
        f"{name} reports {counted(n, 'fault')} at {plant} on {day}."
        for name, day, plant, n in _lines(shown)
    )
    return (
        "Each plant has its own rate of faults, the same every day. People, each right more or "
        f"less often, report the faults. {lines} "
        f"Question: Will {_asked(shown)} on the next day?"
    )


def _lines(shown: Shown) -> list[tuple[str, str, str, int]]:
    return [
        (name, _DAYS[day], shown["plants"][plant], number)
        for name, day, plant, number in shown["reports"]
    ]


def _asked(shown: Shown) -> str:
    plant = shown["plants"][shown["asked"]]
    return f"{plant} have more than {counted(shown['threshold'], 'fault')}"


def _days_of(shown: Shown) -> list[list[tuple[str, int]]]:
    """Return by day the reports on the plant asked about: pairs of a name and a number."""
    days: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for name, day, plant, number in shown["reports"]:
        if plant == shown["asked"]:
            days[day].append((name, number))
    return list(days.values())


def _weights(reports: list[tuple[str, int]]) -> dict[int | None, float]:
    """Return the chance of a day's reports by its true count, `None` for any that is not reported.

    A true count that nobody reports leaves all numbers blind: that chance is the same for all.
    """
    blind = math.prod((1.0 - RELIABILITY[name]) / _BLIND_NUMBERS for name, _ in reports)
    weights: dict[int | None, float] = {None: blind}
    for true in {number for _, number in reports}:
        chance = 1.0
        for name, number in reports:
            right = RELIABILITY[name] if number == true else 0.0
            chance *= right + (1.0 - RELIABILITY[name]) / _BLIND_NUMBERS
        # The blind part is counted once, under `None`, whatever the true count.
        weights[true] = chance - blind
    return weights


def posterior(shown: Shown) -> dict[Totals, float]:
    """Return the probability of each sum of true counts that may be known, and of how many days."""
    law: dict[Totals, float] = defaultdict(float)
    for cells in product(*(_weights(reports).items() for reports in _days_of(shown))):
        counts = [count for count, _ in cells if count is not None]
        weight = math.prod(weight for _, weight in cells)
        law[Totals(sum(counts), len(counts))] += weight * _marginal(counts)
    total = math.fsum(law.values())
    return {totals: weight / total for totals, weight in law.items()}


def _marginal(counts: list[int]) -> float:
    """Return the chance of a plant's counts under the Gamma prior of its rate."""
    shape, rate = _after(Totals(sum(counts), len(counts)))
    log = math.lgamma(shape) - math.lgamma(_SHAPE) - sum(math.lgamma(n + 1) for n in counts)
    return math.exp(log + _SHAPE * math.log(_SHAPE / _MEAN) - shape * math.log(rate))


def _after(totals: Totals) -> tuple[float, float]:
    """Return shape and rate of the Gamma posterior."""
    return _SHAPE + totals.faults, _SHAPE / _MEAN + totals.days


def _predictive(shown: Shown) -> Forecast:
    chance = 0.0
    for totals, weight in posterior(shown).items():
        shape, rate = _after(totals)
        chance += weight * negative_binomial_tail(shape, 1.0 / rate, shown["threshold"])
    return bernoulli(chance)


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    law = posterior(shown)
    totals = list(law)
    shape, rate = _after(totals[int(rng.choice(len(totals), p=list(law.values())))])
    return bernoulli(poisson_tail(float(rng.gamma(shape, 1.0 / rate)), shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds at the mean of all numbers reported of the plant."""
    numbers = [number for reports in _days_of(shown) for _, number in reports]
    return bernoulli(poisson_tail((sum(numbers) + 0.5) / len(numbers), shown["threshold"]))


FAMILY = Family("ledger", _draw, _predictive, _latent, _empirical, full=_full_text, terse=_text)
