"""From an instance to the question it is: its words turn by turn, its odds, its outcomes.

An instance is `{"family", "shown", "negated", "turns"}`. Everything here is a function of it, so
that a Task can be played anywhere without the settings or files it was drawn from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.families.base import Family, Shown
from tokengym.envs.forecasting.levels import Level
from tokengym.envs.forecasting.prompt import opening
from tokengym.rewards.scoring import Forecast

REPLAYS = 64
"""How often the outcome of a synthetic Task is drawn; `replay:K` takes the first K."""

_DIGITS = "0123456789"


@dataclass(frozen=True)
class Question:
    """What a policy can know of an instance at one turn.

    Attributes:
        text: what is new to read at this turn.
        labels: names of the outcomes; none for a yes/no question.
        empirical: what a sensible person computes from what is shown.
        predictive: the posterior predictive probabilities given what is shown; the oracle's.
    """

    text: str
    labels: tuple[str, ...]
    empirical: Forecast
    predictive: Forecast

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Question itself."""
        return self


def draw(rng: np.random.Generator, families: tuple[str, ...], level: Level) -> dict[str, Any]:
    """Draw an instance of one of `families` at `level`."""
    family = FAMILIES[families[int(rng.integers(len(families)))]]
    negated = family.labels is None and bool(rng.random() < level.negated)
    return {
        "family": family.name,
        "shown": dict(family.draw(rng, level.knobs)),
        "negated": negated,
        "turns": level.turns,
    }


def predictive(instance: Mapping[str, Any]) -> Forecast:
    """Return the outcomes' posterior predictive probabilities given all that is shown."""
    return _turned(FAMILIES[instance["family"]].predictive(instance["shown"]), instance)


def solve(instance: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Return the odds of an instance and `REPLAYS` outcomes, none of it ever shown.

    `p_bayes` are the outcomes' probabilities given all that is shown, `p_latent` those under the
    hidden parameter. The first outcome is drawn from `p_latent`; each replay after it draws the
    hidden parameter anew, so that the share of outcomes tends to `p_bayes`.
    """
    family = FAMILIES[instance["family"]]
    bayes = predictive(instance)
    latent = _turned(family.latent(instance["shown"], rng), instance)
    uniforms = rng.random(REPLAYS)
    outcomes = np.searchsorted(np.cumsum(bayes)[:-1], uniforms, side="right")
    outcomes[0] = np.searchsorted(np.cumsum(latent)[:-1], uniforms[0], side="right")
    return {
        "p_bayes": list(bayes),
        "p_latent": list(latent),
        "outcomes": "".join(_DIGITS[outcome] for outcome in outcomes),
    }


def questions(task: Task) -> tuple[Question, ...]:
    """Return what each turn of `task` asks.

    Raises:
        TaskError: if the Task is not one that this world draws.
    """
    try:
        instance = task.instance
        family = FAMILIES[instance["family"]]
        stages = _stages(family, instance)
        return tuple(
            _question(family, shown, instance, first=number == 0)
            for number, shown in enumerate(stages)
        )
    except (KeyError, IndexError, TypeError, ValueError, ArithmeticError) as error:
        raise TaskError(f"damaged Task of {task.world}: {error!r}") from error


def _stages(family: Family, instance: Mapping[str, Any]) -> tuple[Shown, ...]:
    shown = instance["shown"]
    if instance["turns"] == 1 or family.earlier is None:
        return (shown,)
    return (family.earlier(shown), shown)


def _question(
    family: Family, shown: Shown, instance: Mapping[str, Any], *, first: bool
) -> Question:
    labels = () if family.labels is None else tuple(family.labels(shown))
    if first:
        text = opening(family.text(shown), negated=instance["negated"])
    else:
        assert family.news is not None
        text = family.news(shown)
    return Question(
        text,
        labels,
        _turned(family.empirical(shown), instance),
        _turned(family.predictive(shown), instance),
    )


def _turned(forecast: Forecast, instance: Mapping[str, Any]) -> Forecast:
    """Swap (no, yes) where the opposite is asked."""
    return forecast[::-1] if instance["negated"] else forecast
