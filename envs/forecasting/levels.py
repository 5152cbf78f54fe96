"""The levels: which families they ask, how hard, and in how many turns."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tokengym.envs.forecasting.families.base import Knobs


@dataclass(frozen=True)
class Level:
    """One level of synthetic questions.

    Attributes:
        families: names of the families it draws from, with equal chances.
        knobs: how hard each family is made.
        negated: chance that the probability of the opposite is asked for.
        turns: 1, or 2 where the second turn reveals more data and asks again.
    """

    families: tuple[str, ...]
    knobs: Knobs
    negated: float = 0.0
    turns: int = 1


LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "easy": Level(("frequency", "contest", "poisson"), Knobs(size=1, stated=True, tail=0.3)),
    }
)
