"""Days with some of several things on: which of them bring a fault, and how, is hidden.

Of `switches` a hidden set is live, and an odd number of live ones brings a fault. Of `gauges` one
decides which of two others counts. In both no single one of them tells much about a fault.
"""

from collections.abc import Sequence
from functools import cache
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from tokengym.envs.forecasting.families.base import Knobs, Shown
from tokengym.envs.forecasting.families.evidence import ERRORS, Evidence, Posterior, weigh

Bools = npt.NDArray[np.bool_]

_LETTERS = "ABCDEF"
_NEARER = 4.0
"""How much more a day weighs in `empirical` that differs in one thing fewer."""

_ASKS = {
    "next": "Will the next day bring a fault?",
    "first": "Will the first of these two days bring a fault?",
    "not_first": "Will the first of these two days bring no fault?",
    "second": "Will the second of these two days bring a fault?",
    "both": "Will both days bring a fault?",
    "either": "Will at least one of these two days bring a fault?",
}


@cache
def _patterns(count: int) -> Bools:
    """Return all patterns of `count` things, off or on, shape (2**count, count)."""
    return np.array(list(product((False, True), repeat=count)))


@cache
def switch_laws(count: int) -> Bools:
    """Return whether each set of live switches means a fault in each pattern of switches on.

    Shape (sets, patterns); sets are in the order of the patterns.
    """
    patterns = _patterns(count).astype(int)
    verdicts: Bools = patterns @ patterns.T % 2 == 1
    return verdicts


@cache
def gauge_laws(count: int) -> Bools:
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


_LAWS = {"switches": switch_laws, "gauges": gauge_laws}
_ON = {"switches": "on", "gauges": "high"}
_RULES = {
    "switches": (
        "A plant has {count} switches, {names}. Each of them is live with probability 1/2, and "
        "nobody knows which are. If an odd number of live switches is on, a day brings a fault "
        "with probability {sure}%, else with probability {error}%. Days so far, by the switches "
        "that were on"
    ),
    "gauges": (
        "A plant has {count} gauges, {names}, each high or low. One of them, the guide, decides "
        "which of two others counts on a day: the first while the guide is high, the second while "
        "it is low. Each of these two means a fault either when it is high or when it is low. "
        "Nobody knows which gauges they are and what they mean; all possibilities are equally "
        "likely. If the gauge that counts means a fault, the day brings one with probability "
        "{sure}%, else with probability {error}%. Days so far, by the gauges that were high"
    ),
}
_TERSE = {
    "switches": "{count} switches, each live or not. Odd number of live ones on: fault {sure}%",
    "gauges": (
        "{count} gauges. One picks, high or low, which of two others counts; each of these means "
        "a fault either high or low. If it does: fault {sure}%"
    ),
}


def _kind(name: str) -> Evidence:
    laws = _LAWS[name]

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

    def full(shown: Shown) -> str:
        ahead = ", on the day after it ".join(_words(shown, day) for day in shown["asked"])
        rule, days = _state(_RULES[name], shown), _days(shown, ": ")
        return f"{rule}: {days}. On the next day {ahead} will be {_ON[name]}."

    def terse(shown: Shown) -> str:
        ahead = ", then ".join(_words(shown, day) for day in shown["asked"])
        stated = _state(_TERSE[name], shown)
        return f"{stated}, else {shown['error']}%. {_days(shown, ' ')}. Next {ahead}."

    return Evidence(name, draw, posterior, _empirical, _cues, full, terse, _ASKS)


def _state(rule: str, shown: Shown) -> str:
    count, error = shown["count"], shown["error"]
    names = f"{', '.join(_LETTERS[: count - 1])} and {_LETTERS[count - 1]}"
    return rule.format(count=count, names=names, error=error, sure=100 - error)


def _words(shown: Shown, day: int) -> str:
    on = _patterns(shown["count"])[day]
    return "".join(name for name, is_on in zip(_LETTERS, on, strict=False) if is_on) or "none"


def _days(shown: Shown, mark: str) -> str:
    pairs = zip(shown["days"], shown["faults"], strict=True)
    return ", ".join(
        f"{_words(shown, day)}{mark}{'fault' if fault else 'ok'}" for day, fault in pairs
    )


def _distances(shown: Shown, case: int) -> npt.NDArray[np.int64]:
    """Return in how many things each day so far differs from a case."""
    patterns = _patterns(shown["count"])
    unlike = patterns[shown["days"]] ^ patterns[shown["asked"][case]]
    distances: npt.NDArray[np.int64] = unlike.sum(axis=1)
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
