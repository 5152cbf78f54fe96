"""Numeric questions as thresholds: in which of several ranges will a number fall?

The ranges are ordered outcomes, three to five of them.
"""

import numpy as np

from tokengym.envs.forecasting.families.base import Family, Knobs, Shown
from tokengym.envs.forecasting.families.quantities import FAULTS, READINGS, VOTES, Quantity

_NAMES = "ABCDE"
_FEWEST, _MOST = 2, 4
"""Thresholds of a question."""


def ranges(quantity: Quantity) -> Family:
    """Return the family that asks for the range of a number."""

    def draw(rng: np.random.Generator, knobs: Knobs) -> Shown:
        facts = quantity.draw(rng, knobs)
        count = int(rng.integers(_FEWEST, _MOST + 1))
        return {"facts": facts, "edges": quantity.draw_edges(facts, count, rng)}

    def listed(shown: Shown) -> str:
        pairs = zip(_NAMES, quantity.name_ranges(shown["edges"]), strict=False)
        return ", ".join(f"{name}: {words}" for name, words in pairs)

    def full_text(shown: Shown) -> str:
        facts = shown["facts"]
        question = quantity.how_many(facts)
        return f"{quantity.facts(facts, 'full')} Question: {question} {listed(shown)}."

    def text(shown: Shown) -> str:
        facts = shown["facts"]
        return f"{quantity.facts(facts, 'terse')} {quantity.how_many(facts)} {listed(shown)}."

    return Family(
        f"{quantity.name}_ranges",
        draw,
        predictive=lambda shown: quantity.predictive(shown["facts"], shown["edges"]),
        latent=lambda shown, rng: quantity.latent(shown["facts"], shown["edges"], rng),
        empirical=lambda shown: quantity.empirical(shown["facts"], shown["edges"]),
        full=full_text,
        terse=text,
        options=lambda shown: len(shown["edges"]) + 1,
        ordered=True,
    )


FAMILIES = tuple(map(ranges, (FAULTS, VOTES, READINGS)))
