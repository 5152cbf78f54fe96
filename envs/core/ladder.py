"""A level's ladder: policies that the field knows by name, each better than the one before.

A policy's place on it is stated in the natural unit of the game, such as money, so that it does not
change with the shape of the return. `tokengym.agents.scale.ladder` measures the reference policies.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from tokengym.envs.core.turn import expected_return

Kind = Literal["constant", "thumb", "textbook", "planner", "optimum", "bound"]
"""Needs of a reference policy: nothing, a look, an algorithm, a search, or hidden facts."""


class Rung(NamedTuple):
    """A policy that a ladder has.

    Attributes:
        policy: the baseline that plays it.
        kind: what it needs.
        name: what the field calls it.
        source: author and year; empty where it is folklore.
    """

    policy: str
    kind: Kind
    name: str
    source: str = ""


@dataclass(frozen=True)
class Ladder:
    """The reference policies of a level, and the unit in which they are compared.

    Attributes:
        rungs: from the lowest to the highest, which is the optimum, a bound of it, or the best plan
            that is known.
        zero: the baseline whose value counts as nothing gained.
        unit: of values, such as `$`.
        weights: by end-of-episode metric, what a unit of it adds to the value; the value is the
            return, in expectation where that is known, if there are none.
    """

    rungs: tuple[Rung, ...]
    zero: str
    unit: str = "score"
    weights: Mapping[str, float] = field(default_factory=dict)

    def value(self, paid: float, ends: Mapping[str, float | None], role: str) -> float:
        """Return what an episode was worth; NaN where it does not say.

        Args:
            paid: its return.
            ends: metrics of its end.
            role: whose they are.
        """
        if not self.weights:
            mean = ends.get(expected_return(role))
            return paid if mean is None else mean
        known = {name: ends.get(name) for name in self.weights}
        return sum(
            weight * (float("nan") if (number := known[name]) is None else number)
            for name, weight in self.weights.items()
        )


def read_ladders(path: Path) -> Mapping[str, Ladder]:
    """Read a TOML file with a table for each ladder: its fields, and the `levels` that it is of."""
    found: dict[str, Ladder] = {}
    for table in tomllib.loads(path.read_text("utf-8"))["ladder"]:
        levels, rungs = table.pop("levels"), table.pop("rungs")
        found |= dict.fromkeys(levels, Ladder(tuple(Rung(*rung) for rung in rungs), **table))
    return found
