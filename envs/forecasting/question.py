"""The questions of an instance, turn by turn, with the forecasts that the facts imply.

An instance is `{"family", "shown", "negated", "asides", "turns"}`. Everything here is a function of
it, so that a Task can be played anywhere without the settings it was drawn with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Family, Shown, before_news, bernoulli
from tokengym.envs.forecasting.oracle import as_asked
from tokengym.envs.forecasting.texts import macros
from tokengym.rewards.scoring import Forecast


@dataclass(frozen=True)
class Question:
    """The question of one turn, and the forecasts to compare with.

    Attributes:
        text: what is new to read at this turn, without the instructions.
        options: number of outcomes, called A, B, C, ...; 0 for a yes/no question.
        negated: whether the probability of no is asked for; the forecasts below are swapped then.
        empirical: what a sensible person computes from what is shown; `None` if nothing is.
        predictive: the posterior predictive probabilities given what is shown; `None` where no
            model of the world is known.
        family: name of the family; empty where the question is not synthetic.
        cues: further numbers that may speak for the answer asked about, for a regression.
        steps: arithmetic that leads to about what `empirical` says; `None` where none is written.
        price: the market's probabilities, if they are shown.
        ordered: whether the outcomes are in order, as ranges of a number are.
        event: of a yes/no question that is one of several on the same facts, the outcomes of the
            facts in which its answer is yes; `None` otherwise.
        likeliest: the forecast by the law alone that explains most; `None` where there is none.
        called: whether the answer is the call of a tool.
    """

    text: str
    options: int
    negated: bool
    empirical: Forecast | None
    predictive: Forecast | None
    family: str = ""
    cues: tuple[float, ...] = ()
    steps: str | None = None
    price: Forecast | None = None
    ordered: bool = False
    event: tuple[int, ...] | None = None
    likeliest: Forecast | None = None
    called: bool = False

    def weigh(self, shares: Forecast) -> Forecast:
        """Return the weights of this question's outcomes from the shares of those of the facts."""
        return shares if self.event is None else _merge(shares, self.event)


def questions(instance: Mapping[str, Any], prompt: str) -> tuple[Question, ...]:
    """Return the question of each turn of an instance.

    Args:
        instance: as `draw` gives it.
        prompt: `full` or `terse`, how the world words them.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError: if it is not one that `draw` gives.
    """
    family = FAMILIES[instance["family"]]
    shown = instance["shown"]
    worded = getattr(macros(f"prompt_{prompt}"), family.name)(shown)
    text = " ".join([*instance["asides"], worded])
    if family.events is not None:
        events = family.events(shown)
        texts = [text, *(_later(family, shown, turn) for turn in range(1, len(events)))]
        return _several(family, texts, events, instance)
    if instance["turns"] == 1:
        return (_question(family, text, shown, instance),)
    first = _question(family, text, before_news(shown), instance)
    return (first, _question(family, _later(family, shown, 1), shown, instance))


def _later(family: Family, shown: Shown, turn: int) -> str:
    """Return what is new in a later turn, counted from 1: further data, or another question."""
    worded = getattr(macros("lines"), f"{family.name}_later", None)
    if worded is None:
        raise ValueError(f"questions of the family {family.name!r} have one turn")
    text: str = worded(shown, turn)
    return text


def _question(family: Family, text: str, shown: Shown, instance: Mapping[str, Any]) -> Question:
    negated = instance["negated"]
    cues = () if family.cues is None else family.cues(shown)
    likeliest = None if family.likeliest is None else family.likeliest(shown)
    return Question(
        text,
        0 if family.options is None else family.options(shown),
        negated,
        as_asked(family.empirical(shown), negated=negated),
        as_asked(family.predictive(shown), negated=negated),
        family.name,
        tuple(-cue if negated else cue for cue in cues),
        None if family.steps is None else family.steps(shown),
        likeliest=likeliest and as_asked(likeliest, negated=negated),
    )


def _several(
    family: Family,
    texts: Sequence[str],
    events: Sequence[Sequence[int]],
    instance: Mapping[str, Any],
) -> tuple[Question, ...]:
    """Return the questions of a family that asks several on the same facts."""
    shown = instance["shown"]
    if instance["turns"] != len(events):
        raise ValueError(f"questions of the family {family.name!r} have {len(events)} turns")
    empirical, predictive = family.empirical(shown), family.predictive(shown)
    likeliest = None if family.likeliest is None else family.likeliest(shown)
    return tuple(
        Question(
            text,
            0,
            False,
            _merge(empirical, event),
            _merge(predictive, event),
            family.name,
            event=tuple(event),
            likeliest=likeliest and _merge(likeliest, event),
        )
        for text, event in zip(texts, events, strict=True)
    )


def _merge(shares: Forecast, event: Sequence[int]) -> Forecast:
    """Return (no, yes) from the shares of the outcomes; `event` lists those that mean yes."""
    return bernoulli(sum(shares[outcome] for outcome in event))
