"""The levels: which families they use, how hard, and in how many turns."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Knobs:
    """The difficulty of a level's questions.

    Attributes:
        size: 1 short, 2 medium, 3 long histories and horizons.
        stated: whether priors and hidden rules are stated, or must be learned from many questions.
        tail: chance that a threshold is moved far from what the data suggest.
        staged: whether part of the data is kept for a second turn.
    """

    size: int
    stated: bool = True
    tail: float = 0.2
    staged: bool = False


@dataclass(frozen=True)
class DeskKnobs:
    """Contents of an archive.

    Attributes:
        reports: number of reports, three or more.
        errata: how many of them have an erratum.
        right: per cent, from and below, in which reports are right.
    """

    reports: int
    errata: int
    right: tuple[int, int]


@dataclass(frozen=True)
class ForecastLevel:
    """One level of synthetic questions.

    Attributes:
        families: names of the families it draws from, with equal chances.
        knobs: how hard each family is made.
        negated: chance that the probability of no is asked for.
        distractors: most irrelevant sentences before the question.
        turns: 1; 2 where the second turn reveals more data and asks again; 5 where each turn asks
            another question on the same facts; at a desk, most looks and answers together.
        desk: what an archive holds whose notes may be read at a price; `None` elsewhere.
    """

    families: tuple[str, ...]
    knobs: Knobs
    negated: float = 0.0
    distractors: int = 0
    turns: int = 1
    desk: DeskKnobs | None = None


_EASY = ("frequency", "contest", "poisson")
_MEDIUM = (*_EASY, "walk", "markov", "branching", "autoregression", "polls", "voter")

LEVELS: Mapping[str, ForecastLevel] = MappingProxyType(
    {
        "easy": ForecastLevel(_EASY, Knobs(size=1)),
        "hard": ForecastLevel(
            (*_MEDIUM, "censored", "conjunction"),
            Knobs(size=3, stated=False, tail=0.5),
            negated=0.3,
            distractors=2,
        ),
        "expert": ForecastLevel(
            ("switches", "gauges", "buttons"),
            Knobs(size=3, stated=False),
            negated=0.3,
            distractors=2,
        ),
        "update": ForecastLevel((*_EASY, "polls", "voter"), Knobs(size=2, staged=True), turns=2),
        "twins": ForecastLevel(
            ("twin_switches", "twin_gauges", "twin_buttons"), Knobs(size=3), turns=5
        ),
        "desk": ForecastLevel((), Knobs(size=2), turns=12, desk=DeskKnobs(4, 0, (80, 96))),
        "desk_errata": ForecastLevel((), Knobs(size=3), turns=12, desk=DeskKnobs(3, 2, (86, 98))),
    }
)
