"""The questions of an instance, turn by turn, with the forecasts that what is shown implies.

An instance is `{"family", "shown", "negated", "asides", "turns"}`. Everything here is a function of
it, so that a Task can be played anywhere without the settings it was drawn with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Family, Shown, before_news
from tokengym.envs.forecasting.oracle import as_asked
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
        price: the market's probabilities, if they are shown.
    """

    text: str
    options: int
    negated: bool
    empirical: Forecast | None
    predictive: Forecast | None
    price: Forecast | None = None


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
    words = family.wording(prompt)
    text = " ".join([*instance["asides"], words.text(shown)])
    if instance["turns"] == 1:
        return (_question(family, text, shown, instance),)
    if words.news is None:
        raise ValueError(f"questions of the family {family.name!r} have one turn")
    first = _question(family, text, before_news(shown), instance)
    return (first, _question(family, words.news(shown), shown, instance))


def _question(family: Family, text: str, shown: Shown, instance: Mapping[str, Any]) -> Question:
    negated = instance["negated"]
    return Question(
        text,
        0 if family.options is None else family.options(shown),
        negated,
        as_asked(family.empirical(shown), negated=negated),
        as_asked(family.predictive(shown), negated=negated),
    )
