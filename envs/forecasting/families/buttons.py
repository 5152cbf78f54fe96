"""A machine with buttons: what each of them does is hidden, a sensor sees some of what follows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise, product

import numpy as np

from tokengym.envs.forecasting.families.base import Shown
from tokengym.envs.forecasting.families.evidence import ERRORS, LawKind, Posterior, weigh
from tokengym.envs.forecasting.levels import Knobs
from tokengym.rewards.arrays import Ints

_EFFECTS = ((0, 1), (0, 0), (1, 1), (1, 0))
"""States after a button of a machine that stands still, 0, and of one that runs, 1."""
_FEWEST, _MOST = 5, 7
"""Presses so far, for each button."""
_HEARD = 0.6
"""Chance that the sensor says something after a press."""
_AHEAD = 3
"""Most presses to come, where one state is asked for."""


@cache
def _laws(count: int) -> tuple[Ints, Ints]:
    """Return all laws of `count` buttons: their effects, and the state of the machine at first.

    Shapes (laws, buttons, 2) and (laws,).
    """
    effects = list(product(_EFFECTS, repeat=count))
    return np.array(2 * effects), np.repeat([0, 1], len(effects))


def _states(count: int, pressed: Iterable[int]) -> Ints:
    """Return the state after each press under each law, shape (laws, presses)."""
    effects, state = _laws(count)
    each = np.arange(len(state))
    states = []
    for button in pressed:
        state = effects[each, button, state]
        states.append(state)
    return np.stack(states, axis=1)


def _draw(rng: np.random.Generator, knobs: Knobs, cases: int) -> Shown:
    count = knobs.size
    past = int(rng.integers(_FEWEST * count, _MOST * count + 1))
    ahead = int(rng.integers(1, _AHEAD + 1)) + cases - 1
    error = ERRORS[int(rng.integers(len(ERRORS)))]
    pressed = rng.integers(count, size=past + ahead)
    states = _states(count, pressed[:past])
    sensor = states[int(rng.integers(len(states)))] ^ (rng.random(past) < error / 100.0)
    heard = rng.random(past) < _HEARD
    return {
        "count": count,
        "error": error,
        "pressed": pressed[:past],
        "sensor": [int(said) if read else None for said, read in zip(sensor, heard, strict=True)],
        "ahead": pressed[past:],
        "cases": cases,
    }


def _asked(shown: Shown) -> Sequence[int]:
    """Return which of the presses to come are asked about, by place."""
    return (0, len(shown["ahead"]) - 1)[-shown["cases"] :]


def _posterior(shown: Shown) -> Posterior:
    past = len(shown["pressed"])
    states = _states(shown["count"], [*shown["pressed"], *shown["ahead"]])
    heard = [place for place, said in enumerate(shown["sensor"]) if said is not None]
    said = [shown["sensor"][place] for place in heard]
    weights_L = weigh(states[:, heard] == 1, said, shown["error"] / 100.0)
    return Posterior(weights_L, states[:, [past + place for place in _asked(shown)]].astype(float))


def _transitions(shown: Shown) -> dict[tuple[int, int], list[int]]:
    """Return what the sensor said after a button, by that button and what it had just said."""
    after: dict[tuple[int, int], list[int]] = defaultdict(list)
    for button, (old, new) in zip(shown["pressed"][1:], pairwise(shown["sensor"]), strict=True):
        if old is not None and new is not None:
            after[button, old].append(new)
    return after


def _empirical(shown: Shown) -> Sequence[float]:
    """Follow the machine by how often it ran after a button, given how it was before."""
    after, error = _transitions(shown), shown["error"] / 100.0
    chance, chances = 0.5, []
    heard = [*shown["sensor"], *[None] * len(shown["ahead"])]
    for button, said in zip([*shown["pressed"], *shown["ahead"]], heard, strict=True):
        still, runs = (
            (sum(after[button, old]) + 0.5) / (len(after[button, old]) + 1.0) for old in (0, 1)
        )
        chance = (1.0 - chance) * still + chance * runs
        if said is not None:
            chance = 1.0 - error if said else error
        chances.append(chance)
    return [chances[len(shown["pressed"]) + place] for place in _asked(shown)]


def _cues(shown: Shown) -> Sequence[float]:
    """Return what the sensor said on average after the last button to come, from -1 to 1."""
    pairs = zip(shown["pressed"], shown["sensor"], strict=True)
    alike = [2.0 * s - 1.0 for button, s in pairs if s is not None and button == shown["ahead"][-1]]
    return (sum(alike) / (len(alike) + 1.0),)


BUTTONS = LawKind(
    "buttons",
    "Each button's effect is one of four, all equally likely; the sensor errs at a stated rate.",
    _draw,
    _posterior,
    _empirical,
    _cues,
)
