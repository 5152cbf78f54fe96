"""Twins: five yes/no questions on the same facts, whose answers follow from each other.

Two unrelated numbers X and Y are asked about, each question in a turn of its own, in any order: is
X above a threshold, is it at most that, is it above a higher one, is Y above its own, are both
above theirs? Coherent probabilities sum to 1 over a question and its opposite, never rise with the
threshold, and give both no more than either, nor less than the two together less 1.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown
from tokengym.envs.forecasting.families.quantities import FAULTS, READINGS, VOTES, Quantity
from tokengym.rewards.scoring import Forecast

_QUANTITIES = {quantity.name: quantity for quantity in (FAULTS, VOTES, READINGS)}
_STATES = 6
"""X at most its threshold, between the two, or above both; each with Y at most or above its own."""

_YES = {
    "above": (2, 3, 4, 5),
    "at_most": (0, 1),
    "higher": (4, 5),
    "other": (1, 3, 5),
    "both": (3, 5),
}
"""By question the states in which its answer is yes; 2·x + y is that of the ranges x and y."""


def _draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
    parts = []
    for count in (2, 1):
        name = list(_QUANTITIES)[int(rng.integers(len(_QUANTITIES)))]
        facts = _QUANTITIES[name].draw(rng, knobs)
        edges = _QUANTITIES[name].draw_edges(facts, count, rng)
        parts.append({"quantity": name, "facts": facts, "edges": edges})
    return {"parts": parts, "order": [list(_YES)[i] for i in rng.permutation(len(_YES))]}


def _ask(shown: Shown, kind: str) -> str:
    (first, quantity), (second, other) = (
        (part, _QUANTITIES[part["quantity"]]) for part in shown["parts"]
    )
    low, high = first["edges"]
    above = quantity.exceeds(first["facts"], low)
    also = other.exceeds(second["facts"], second["edges"][0])
    return {
        "above": f"Of (1): {above}",
        "at_most": f"Of (1): {quantity.stays(first['facts'], low)}",
        "higher": f"Of (1): {quantity.exceeds(first['facts'], high)}",
        "other": f"Of (2): {also}",
        "both": f"Is the answer yes to both of these? Of (1): {above} Of (2): {also}",
    }[kind]


def _facts(shown: Shown, prompt: str) -> str:
    return " ".join(
        f"({number}) {_QUANTITIES[part['quantity']].facts(part['facts'], prompt)}"
        for number, part in enumerate(shown["parts"], start=1)
    )


def _full_text(shown: Shown) -> str:
    asked = _ask(shown, shown["order"][0])
    return f"Here are two unrelated cases. {_facts(shown, 'full')} Question: {asked}"


def _text(shown: Shown) -> str:
    return f"{_facts(shown, 'terse')} {_ask(shown, shown['order'][0])}"


def _later(shown: Shown) -> list[str]:
    return [f"Question: {_ask(shown, kind)}" for kind in shown["order"][1:]]


def _joint(
    shown: Shown, forecast: Callable[[Quantity, Shown, Sequence[int]], Forecast]
) -> Forecast:
    """Return the probabilities of the states of two independent numbers, by their own forecasts."""
    first, second = (
        forecast(_QUANTITIES[part["quantity"]], part["facts"], part["edges"])
        for part in shown["parts"]
    )
    return tuple(x * y for x in first for y in second)


def _latent(shown: Shown, rng: np.random.Generator) -> Forecast:
    return _joint(shown, lambda quantity, facts, edges: quantity.latent(facts, edges, rng))


FAMILY = Family(
    "twins",
    _draw,
    predictive=lambda shown: _joint(shown, Quantity.predictive),
    latent=_latent,
    empirical=lambda shown: _joint(shown, Quantity.empirical),
    full=_full_text,
    terse=_text,
    more=_later,
    options=lambda shown: _STATES,
    events=lambda shown: tuple(_YES[kind] for kind in shown["order"]),
    split_key=lambda shown: shown["parts"],
)
