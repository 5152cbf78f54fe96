"""The world of forecasts: questions asked, forecasts scored."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.forecasting.grammar import read_probability
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.prompt import FORM
from tokengym.envs.forecasting.questions import REPLAYS, Question, draw, questions, solve
from tokengym.rewards.scoring import SCORES, Forecast

FORM_SHARE = 0.05
"""What a well-formed forecast earns whatever it says; the score earns the rest."""


class Plan(NamedTuple):
    """A Task as it is asked and scored under given options; computed once per Task."""

    questions: tuple[Question, ...]
    weights: tuple[Forecast, ...]
    best: tuple[float, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Plan itself."""
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
        score: `brier`, `log` or `spherical`.
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
        self.families = _families(family, self.level)
        self.score = score
        self.label = label
        self._replays = _replays(label)
        self._plan = Plan((), (), ())
        self._stage = 0

    @property
    def question(self) -> Question:
        """What is asked at this turn, as a policy can know it."""
        return self._plan.questions[self._stage]

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return what stating the posterior predictive probabilities is expected to earn."""
        plan = _plan(task, self.score, self.label)
        value = FORM_SHARE + (1.0 - FORM_SHARE) * sum(plan.best) / len(plan.best)
        return {"forecaster": Optimum(value, exact=True)}

    def _drawing_options(self) -> tuple[object, ...]:
        return () if self.families == LEVELS[self.level].families else self.families

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return draw(rng, self.families, LEVELS[self.level])

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return solve(instance, rng)

    def _begin(self, task: Task) -> Turn:
        self._plan = _plan(task, self.score, self.label)
        self._stage = 0
        return Turn("forecaster", self._plan.questions[0].text)

    def _respond(self, text: str, complete: bool) -> Turn:
        stated = read_probability(text, complete=complete)
        plan, stage = self._plan, self._stage
        turns = len(plan.questions)
        if isinstance(stated, str):
            terms = {"score": 0.0, "form": 0.0}
            metrics = {"well_formed": 0.0}
            said = stated
        else:
            weights = plan.weights[stage]
            value = SCORES[self.score]((1.0 - stated, stated), weights)
            terms = {"score": (1.0 - FORM_SHARE) * value / turns, "form": FORM_SHARE / turns}
            metrics = {"well_formed": 1.0, "probability": stated, "score": value}
            said = ""
        if stage + 1 < turns:
            self._stage += 1
            rewards, rounded = self._pay({"forecaster": terms}, final=False)
            news = self._plan.questions[self._stage].text
            said = f"{said}\n{news}" if said else news
            return Turn("forecaster", said, rewards, rounded, metrics=metrics)
        reason = StopReason.MALFORMED if isinstance(stated, str) else StopReason.COMPLETED
        return self._end("forecaster", said, {"forecaster": terms}, reason, metrics)


@lru_cache(maxsize=16384)
def _plan(task: Task, score: str, label: str) -> Plan:
    """Work out once what every step on `task` needs."""
    asked = questions(task)
    try:
        outcomes = task.answer["outcomes"][: _replays(label)]
        counts = [outcomes.count(str(i)) for i in range(len(asked[-1].predictive))]
        if not outcomes or sum(counts) != len(outcomes):
            raise ValueError(f"outcomes {outcomes!r}")
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise TaskError(f"damaged answer in a Task of {task.world}: {error!r}") from error
    drawn = tuple(count / len(outcomes) for count in counts)
    rule = SCORES[score]
    weights = tuple(q.predictive if label == "expected" else drawn for q in asked)
    best = tuple(rule(q.predictive, q.predictive) for q in asked)
    return Plan(asked, weights, best)


def _families(family: str | Sequence[str] | None, level: str) -> tuple[str, ...]:
    offered = LEVELS[level].families
    if family is None:
        return offered
    wanted = (family,) if isinstance(family, str) else tuple(family)
    unknown = [name for name in wanted if name not in offered]
    if unknown or not wanted or len(set(wanted)) != len(wanted):
        raise OptionError(
            f"family must be one or several different ones of {list(offered)} at level {level!r}, "
            f"got {family!r}"
        )
    return wanted


def _replays(label: str) -> int:
    """Return how many drawn outcomes a label averages; the expected label reads one for the log."""
    if label in ("outcome", "expected"):
        return 1
    kind, _, count = label.partition(":")
    if kind == "replay" and count.isascii() and count.isdigit() and 1 <= int(count) <= REPLAYS:
        return int(count)
    raise OptionError(
        f"label must be 'outcome', 'expected' or 'replay:K' with K in 1..{REPLAYS}, got {label!r}"
    )
