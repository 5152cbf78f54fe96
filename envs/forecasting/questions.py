"""From an instance to the question it is: its words turn by turn, its odds, its outcomes.

An instance is `{"family", "shown", "negated", "asides", "turns"}`. Everything here is a function of
it, so that a Task can be played anywhere without the settings it was drawn with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import plain
from tokengym.envs.forecasting.asides import draw_asides
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Family, Shown, before_news
from tokengym.envs.forecasting.levels import LEVELS, Level
from tokengym.envs.forecasting.prompt import AGAIN
from tokengym.rewards.scoring import Forecast

REPLAYS = 64
"""How often the outcome of a synthetic Task is drawn; `replay:K` takes the first K."""

_LONG_RECORD = 2000


@dataclass(frozen=True)
class Question:
    """What is asked at one turn, and what can be known about it.

    Attributes:
        text: what is new to read at this turn, without the instructions.
        options: number of outcomes, called A, B, C, ...; 0 for a yes/no question.
        negated: whether the probability of no is asked for; the forecasts below are turned so.
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


def draw(rng: np.random.Generator, families: tuple[str, ...], level: Level) -> dict[str, Any]:
    """Draw an instance of one of `families` at `level`; its values may still be numpy's."""
    family = FAMILIES[families[int(rng.integers(len(families)))]]
    return {
        "family": family.name,
        "shown": family.draw(rng, level.knobs),
        "negated": family.options is None and bool(rng.random() < level.negated),
        "asides": draw_asides(rng, level.asides),
        "turns": level.turns,
    }


def predictive(instance: Mapping[str, Any]) -> Forecast:
    """Return the outcomes' posterior predictive probabilities given all that is shown."""
    return _turned(FAMILIES[instance["family"]].predictive(instance["shown"]), instance["negated"])


@cache
def share_of_yes(level: str, families: tuple[str, ...]) -> float:
    """Return the mean probability of yes over a long record of yes/no questions of a level.

    Args:
        level: name of the level.
        families: names of the families to ask; ½ if all of them have several outcomes.
    """
    asked = tuple(name for name in families if FAMILIES[name].options is None)
    if not asked:
        return 0.5
    rng = generator("forecasting base rate", level, *asked)
    record = (plain(draw(rng, asked, LEVELS[level])) for _ in range(_LONG_RECORD))
    return fmean(predictive(instance)[1] for instance in record)


def solve(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the odds of an instance and `REPLAYS` outcomes, none of it ever shown.

    `p_bayes` are the outcomes' probabilities given all that is shown, `p_latent` those under the
    hidden parameter. The first outcome is drawn from `p_latent`; each replay after it draws the
    hidden parameter anew, so that the shares of the outcomes tend to `p_bayes`.
    """
    family = FAMILIES[instance["family"]]
    bayes = predictive(instance)
    latent = _turned(family.latent(instance["shown"], rng), instance["negated"])
    uniforms = rng.random(REPLAYS)
    outcomes = np.searchsorted(np.cumsum(bayes)[:-1], uniforms, side="right")
    outcomes[0] = np.searchsorted(np.cumsum(latent)[:-1], uniforms[0], side="right")
    return {"p_bayes": bayes, "p_latent": latent, "outcomes": "".join(map(str, outcomes))}


def questions(instance: Mapping[str, Any]) -> tuple[Question, ...]:
    """Return what each turn of an instance asks.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError: if it is not one that `draw` gives.
    """
    family = FAMILIES[instance["family"]]
    shown = instance["shown"]
    text = " ".join([*instance["asides"], family.text(shown)])
    if instance["turns"] == 1:
        return (_question(family, text, shown, instance),)
    if family.news is None:
        raise ValueError(f"questions of the family {family.name!r} have one turn")
    first = _question(family, text, before_news(shown), instance)
    return (first, _question(family, f"{family.news(shown)} {AGAIN}", shown, instance))


def _question(family: Family, text: str, shown: Shown, instance: Mapping[str, Any]) -> Question:
    negated = instance["negated"]
    return Question(
        text,
        0 if family.options is None else family.options(shown),
        negated,
        _turned(family.empirical(shown), negated),
        _turned(family.predictive(shown), negated),
    )


def _turned(forecast: Forecast, negated: bool) -> Forecast:
    """Swap (no, yes) where the opposite is asked."""
    return forecast[::-1] if negated else forecast
