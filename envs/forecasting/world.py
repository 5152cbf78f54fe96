"""The world of forecasts: questions asked, forecasts scored."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tokengym.envs.core.errors import EpisodeStateError, OptionError, TaskError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.prompt import FORM, opening
from tokengym.envs.forecasting.questions import REPLAYS, Question, draw, questions, solve
from tokengym.rewards.scoring import SCORES, Forecast

FORM_SHARE = 0.05
"""What a well-formed forecast earns whatever it says; the score earns the rest."""

_ROLE = "forecaster"


class Stage(NamedTuple):
    """One turn of a Task as it is asked and scored; computed once per Task."""

    text: str
    question: Question
    weights: Forecast
    best: float

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Stage itself."""
        return self


class ForecastWorld(World):
    """One question, one probability, scored by a strictly proper rule.

    The return of a well-formed forecast is 0.05 + 0.95·S with S in [0, 1]; a malformed or cut off
    reply earns 0. Being affine in S it is as proper as S, and a lost form always costs more than a
    confident miss. In two turns each report earns half of it.

    Args:
        spec: the world's row of the catalogue.
        level: `easy` by default.
        family: one name or several out of the level's families; all of them if `None`.
        score: `brier`, `log` (forecasts below 0.01 count as 0.01) or `spherical`.
        label: what S is scored against. `outcome`: what happened. `replay:K`: the mean over K
            outcomes, K up to 64. `expected`: the probability given what is shown, free of noise.

    Raises:
        OptionError: if an option or its value is not one of these.
    """

    expected_form: ClassVar[str] = FORM

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        family: str | Sequence[str] | None = None,
        score: str = "brier",
        label: str = "outcome",
    ) -> None:
        super().__init__(spec, level)
        if score not in SCORES:
            raise OptionError(f"score must be one of {list(SCORES)}, got {score!r}")
        _replays(label)
        self.families = _families(family, self.level)
        self.score = score
        self.label = label
        self._stages: tuple[Stage, ...] = ()
        self._turn = 0

    @property
    def question(self) -> Question:
        """What is asked at this turn.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        if not self._stages:
            raise EpisodeStateError(f"{self.spec.id}: no question before start(task)")
        return self._stages[self._turn].question

    @property
    def best_forecast(self) -> Forecast:
        """What maximises the expected reward of this turn: the posterior, or else what happened.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        return self.question.predictive or self._stages[self._turn].weights

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return what the posterior predictive probabilities of each turn are expected to earn.

        Where no model of the world is known, it is the bound that only clairvoyance reaches.
        """
        stages = _stages(task, self.score, self.label)
        value = sum(stage.best for stage in stages) / len(stages)
        exact = all(stage.question.predictive is not None for stage in stages)
        return {_ROLE: Optimum(FORM_SHARE + (1.0 - FORM_SHARE) * value, exact)}

    def _drawing_options(self) -> tuple[object, ...]:
        return () if self.families == LEVELS[self.level].families else self.families

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return draw(rng, self.families, LEVELS[self.level])

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return solve(instance, rng)

    def _begin(self, task: Task) -> Turn:
        self._stages = _stages(task, self.score, self.label)
        self._turn = 0
        return Turn(_ROLE, self._stages[0].text)

    def _respond(self, text: str, complete: bool) -> Turn:
        stages = self._stages
        stage = stages[self._turn]
        stated = read_forecast(text, stage.question.options, complete=complete)
        if isinstance(stated, str):
            said = stated
            terms = {"score": 0.0, "form": 0.0}
            metrics = {"well_formed": 0.0}
        else:
            said = ""
            value = SCORES[self.score](stated, stage.weights)
            share = 1.0 / len(stages)
            terms = {"score": (1.0 - FORM_SHARE) * share * value, "form": FORM_SHARE * share}
            metrics = self._measure(stated, stage, value)
        if self._turn + 1 < len(stages):
            self._turn += 1
            news = stages[self._turn].text
            rewards, rounded = self._pay({_ROLE: terms}, final=False)
            return Turn(
                _ROLE, f"{said}\n{news}" if said else news, rewards, rounded, metrics=metrics
            )
        reason = StopReason.MALFORMED if said else StopReason.COMPLETED
        return self._end(_ROLE, said, {_ROLE: terms}, reason, metrics)

    def _measure(self, stated: Forecast, stage: Stage, value: float) -> dict[str, float]:
        """Return the numbers of a well-formed report for logs."""
        metrics = {"well_formed": 1.0, "score": value}
        if not stage.question.options:
            metrics["probability"] = stated[1]
            metrics["label"] = stage.weights[1]
        odds = stage.question.predictive
        if odds is not None:
            metrics["regret"] = stage.best - SCORES[self.score](stated, odds)
        return metrics


@lru_cache(maxsize=16384)
def _stages(task: Task, score: str, label: str) -> tuple[Stage, ...]:
    """Work out once what every step on `task` needs."""
    rule = SCORES[score]
    try:
        asked = questions(task.instance)
        outcomes = task.answer["outcomes"][: _replays(label)]
        drawn = _shares(outcomes, asked[-1].options or 2)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise TaskError(f"damaged Task of {task.world}: {error!r}") from error
    stages = []
    for turn, question in enumerate(asked):
        text = question.text
        if turn == 0:
            text = opening(text, question.options, negated=question.negated, score=score)
        odds = question.predictive or drawn
        weights = odds if label == "expected" else drawn
        stages.append(Stage(text, question, weights, rule(odds, odds)))
    return tuple(stages)


def _shares(outcomes: str, count: int) -> Forecast:
    """Return how often each of `count` outcomes occurs among `outcomes`, one digit each."""
    counts = [outcomes.count(str(outcome)) for outcome in range(count)]
    if not outcomes or sum(counts) != len(outcomes):
        raise ValueError(f"outcomes must be digits below {count}, got {outcomes!r}")
    return tuple(count / len(outcomes) for count in counts)


def _families(family: str | Sequence[str] | None, level: str) -> tuple[str, ...]:
    offered = LEVELS[level].families
    if family is None:
        return offered
    wanted = (family,) if isinstance(family, str) else tuple(family)
    if not wanted or len(set(wanted)) != len(wanted) or not set(wanted) <= set(offered):
        raise OptionError(
            f"family must be one or several different ones of {list(offered)} at level {level!r}, "
            f"got {family!r}"
        )
    return wanted


def _replays(label: str) -> int:
    """Return how many drawn outcomes a label averages."""
    if label in ("outcome", "expected"):
        return 1
    kind, _, count = label.partition(":")
    if kind == "replay" and count.isascii() and count.isdigit() and 1 <= int(count) <= REPLAYS:
        return int(count)
    raise OptionError(
        f"label must be 'outcome', 'expected' or 'replay:K' with K in 1..{REPLAYS}, got {label!r}"
    )
