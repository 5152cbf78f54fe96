"""Days with some of several things on: which of them bring a fault, and how, is hidden.

Of `switches` a hidden set is live, and an odd number of live ones brings a fault. Of `gauges` one
decides which of two others counts. In both no single one of them tells much about a fault.
"""

from collections.abc import Sequence
from functools import cache
from itertools import permutations, product

import numpy as np

from tokengym.envs.forecasting.families.base import Shown
from tokengym.envs.forecasting.families.evidence import ERRORS, LawKind, Posterior, weigh
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.arrays import Flags, Ints

_LETTERS = "ABCDEF"
_NEARER = 4.0
"""How much more a day weighs in `empirical` that differs in one thing fewer."""


@cache
def _patterns(count: int) -> Flags:
    """Return all patterns of `count` things, off or on, shape (2**count, count)."""
    return np.array(list(product((False, True), repeat=count)))


@cache
def switch_laws(count: int) -> Flags:
    """Return whether each set of live switches means a fault in each pattern of switches on.

    Shape (sets, patterns); sets are in the order of the patterns.
    """
    patterns = _patterns(count).astype(int)
    verdicts: Flags = patterns @ patterns.T % 2 == 1
    return verdicts


@cache
def gauge_laws(count: int) -> Flags:
    """Return whether each choice of gauges means a fault in each pattern of high ones.

    Shape (choices, patterns). A choice is three gauges, the guide, the one that counts while the
    guide is high and the one that counts while it is low, and for each of these whether it means a
    fault when it is low.
    """
    high = _patterns(count).T
    return np.array(
        [
            np.where(high[guide], high[one] ^ inverse, high[other] ^ reverse)
            for guide, one, other in permutations(range(count), 3)
            for inverse, reverse in product((False, True), repeat=2)
        ]
    )


_LAWS = {
    "switches": (switch_laws, "A hidden set of switches is live, each with chance ½;"),
    "gauges": (gauge_laws, "A hidden gauge says which of two others counts, all equally likely;"),
}


def _kind(name: str) -> LawKind:
    laws, law_of = _LAWS[name]
    sentence = f"{law_of} a day departs from what follows at a stated rate."

    def draw(rng: np.random.Generator, knobs: Knobs, cases: int) -> Shown:
        count = 2 + knobs.size
        days = int(rng.integers(2 * count, 3 * count + 1))
        error = ERRORS[int(rng.integers(len(ERRORS)))]
        on = rng.integers(2**count, size=days + cases)
        law = laws(count)[int(rng.integers(len(laws(count))))]
        faults = law[on[:days]] ^ (rng.random(days) < error / 100.0)
        return {
            "count": count,
            "error": error,
            "days": on[:days],
            "faults": faults.astype(int),
            "asked": on[days:],
        }

    def posterior(shown: Shown) -> Posterior:
        error, verdicts = shown["error"] / 100.0, laws(shown["count"])
        weights_L = weigh(verdicts[:, shown["days"]], shown["faults"], error)
        return Posterior(weights_L, np.where(verdicts[:, shown["asked"]], 1.0 - error, error))

    return LawKind(name, sentence, draw, posterior, _empirical, _cues)


def pattern(count: int, number: int) -> str:
    """Write which of `count` things are on in a pattern, `ACD` or `none`."""
    on = _patterns(count)[number]
    return "".join(name for name, is_on in zip(_LETTERS, on, strict=False) if is_on) or "none"


def _distances(shown: Shown, case: int) -> Ints:
    """Return in how many things each day so far differs from a case."""
    patterns = _patterns(shown["count"])
    unlike = patterns[shown["days"]] ^ patterns[shown["asked"][case]]
    distances: Ints = unlike.sum(axis=1)
    return distances


def _empirical(shown: Shown) -> Sequence[float]:
    """Return the shares of faults on days that are alike."""
    shares = []
    for case in range(len(shown["asked"])):
        weights = _NEARER ** -_distances(shown, case).astype(float)
        shares.append(float((weights @ shown["faults"] + 0.25) / (weights.sum() + 0.5)))
    return shares


def _cues(shown: Shown) -> Sequence[float]:
    """Return by distance how many more days with than without a fault lie there."""
    signs = 2.0 * np.array(shown["faults"]) - 1.0
    return tuple(np.bincount(_distances(shown, 0), signs, minlength=shown["count"] + 1).tolist())


SWITCHES, GAUGES = map(_kind, _LAWS)
