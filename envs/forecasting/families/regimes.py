"""Daily counts whose rate changes without notice: will the next day bring more than c?

Each day the rate is drawn again with chance h, from a Gamma prior. The law of the days since the
last change follows by recursion over the days (Adams and MacKay 2007), exactly: the days of a run
have negative binomial likelihoods. Neither h nor the changes are stated.
"""

import math
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from tokengym.envs.forecasting.families.base import (
    Family,
    Knobs,
    Shown,
    bernoulli,
    counted,
    spread_out,
)
from tokengym.envs.forecasting.families.poisson import negative_binomial_tail, poisson_tail
from tokengym.rewards.scoring import Forecast

_CHANGE = 0.12
_SHAPE, _MEAN = 1.0, 9.0
_LATEST = 4
"""Days that count for a reader who sees that the rate changes."""


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    counts = []
    rate = _rate(rng, [])
    for _ in range(int(rng.integers(6 * knobs.size, 10 * knobs.size + 1))):
        if rng.random() < _CHANGE:
            rate = _rate(rng, [])
        counts.append(int(rng.poisson(rate)))
    # Near the latest days, where both answers are likely, and a function of what is shown.
    latest = float(np.mean(counts[-_LATEST:])) + 0.5
    return {
        "counts": counts,
        "threshold": max(0, round(latest + math.sqrt(latest) * spread_out(rng, knobs))),
    }


def _text(shown: Shown) -> str:
    return (
        f"Faults a day: {' '.join(map(str, shown['counts']))}. "
        f"Will the next day bring more than {shown['threshold']}?"
    )


def _full_text(shown: Shown) -> str:
    return (
        f"Faults per day at a plant, the latest last: {', '.join(map(str, shown['counts']))}. "
        f"Question: Will the next day bring more than {counted(shown['threshold'], 'fault')}?"
    )


def _rate(rng: np.random.Generator, seen: Sequence[int]) -> float:
    """Draw a rate from its posterior given the days of its run."""
    return float(rng.gamma(_SHAPE + sum(seen), 1.0 / (_SHAPE / _MEAN + len(seen))))


def run_lengths(counts: Sequence[int]) -> list[float]:
    """Return the probability that the current rate has held for 0, 1, ..., all days so far.

    The rate of the next day holds 0 days so far if it has just changed.
    """
    law = [1.0]
    sums = [0, *accumulate(counts)]
    for day, count in enumerate(counts):
        after = [
            weight * _chance_of(count, sums[day] - sums[day - length], length)
            for length, weight in enumerate(law)
        ]
        total = math.fsum(after)
        grown = [weight / total for weight in after]
        law = [_CHANGE, *((1.0 - _CHANGE) * weight for weight in grown)]
    return law


def _chance_of(count: int, total: int, length: int) -> float:
    """Return the negative binomial chance of a day's count after `total` in a run of days."""
    shape, days = _SHAPE + total, _SHAPE / _MEAN + length
    log = math.lgamma(shape + count) - math.lgamma(shape) - math.lgamma(count + 1)
    return math.exp(log + shape * math.log(days / (days + 1.0)) - count * math.log(days + 1.0))


def _predictive(shown: Shown) -> Forecast:
    counts, threshold = shown["counts"], shown["threshold"]
    chance = 0.0
    for length, weight in enumerate(run_lengths(counts)):
        seen = counts[len(counts) - length :]
        mean = 1.0 / (_SHAPE / _MEAN + len(seen))
        chance += weight * negative_binomial_tail(_SHAPE + sum(seen), mean, threshold)
    return bernoulli(chance)


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    counts = shown["counts"]
    law = run_lengths(counts)
    length = int(rng.choice(len(law), p=law))
    rate = _rate(rng, counts[len(counts) - length :])
    return bernoulli(poisson_tail(rate, shown["threshold"]))


def _empirical(shown: Shown) -> Forecast:
    """Return the odds at the mean rate of the latest days."""
    counts = shown["counts"][-_LATEST:]
    return bernoulli(poisson_tail((sum(counts) + 0.5) / len(counts), shown["threshold"]))


FAMILY = Family("regimes", _draw, _predictive, _latent, _empirical, full=_full_text, terse=_text)
