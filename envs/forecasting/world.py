"""The world of forecasts: questions asked, forecasts scored."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import EpisodeStateError, OptionError
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn
from tokengym.envs.core.world import Optimum, World
from tokengym.envs.forecasting.data.ask import answer_of, instance_of
from tokengym.envs.forecasting.data.load import Dataset, load_dataset
from tokengym.envs.forecasting.data.report import DataReport
from tokengym.envs.forecasting.grammar import read_forecast
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.prompt import FORM
from tokengym.envs.forecasting.questions import Question, draw, share_of_yes, solve
from tokengym.envs.forecasting.stages import Stage, replays, stages_of
from tokengym.rewards.scoring import SCORES, Forecast

FORM_SHARE = 0.05
"""What a well-formed forecast earns whatever it says; the score earns the rest."""

_ROLE = "forecaster"


class ForecastWorld(World):
    """One question, one probability, scored by a strictly proper rule.

    Description:
        Synthetic families of questions whose exact posterior predictive odds are known, or the
        resolved questions of a user's own files. `easy` asks three families in few words, `medium`
        nine, `hard` adds conjunctions, facts beside the point and unstated priors, and `update`
        reveals more data in a second turn and asks again.

    Observation:
        The first turn says what to answer and asks; in two turns the second one brings the news.

    Action:
        Any text. Its last line `Probability: 0.137` counts, or of a question with several outcomes
        `Probabilities: A 0.500, B 0.300, C 0.200`.

    Reward:
        0.05 + 0.95·S for a well-formed forecast, with S in [0, 1]; 0 for one that is malformed or
        cut off. Being affine in S it is as proper as S, and a lost form always costs more than a
        confident miss. In two turns each report earns half of it.

    Episode end:
        After one report, or two at `update`.

    Args:
        spec: the world's row of the catalogue.
        level: `easy` by default.
        family: one name or several out of the level's families; all of them if `None`.
        score: `brier`, `log` (forecasts below 0.01 count as 0.01) or `spherical`.
        label: what S is scored against. `outcome`: what happened. `replay:K`: the mean over K
            outcomes, K up to 64. `expected`: the probability given what is shown, free of noise.
        data: files of resolved questions to ask instead of synthetic ones: JSON lines of
            `{id, question, background, asked_at, resolves_at, outcome}`, a Prophet Arena CSV, or
            files of ForecastBench (both sets), Metaculus, Manifold or Autocast. They have the
            default level, one label (`outcome`) and no families.
        cutoff: with `data`, the ISO 8601 date that separates training from test.
        show_prices: with `data`, whether market prices are shown.

    Raises:
        OptionError: if an option or its value is not one of these.
        DataError: if no question of the files can be used.

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.

    Version history:
        v0: first.
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
        data: str | Path | Sequence[str | Path] | None = None,
        cutoff: str | None = None,
        show_prices: bool = False,
    ) -> None:
        super().__init__(spec, level)
        if score not in SCORES:
            raise OptionError(f"score must be one of {list(SCORES)}, got {score!r}")
        replays(label)
        self.families = _families(family, self.level)
        self.score = score
        self.label = label
        self._show_prices = show_prices
        self._dataset = self._load(data, cutoff, family)
        self._stages: tuple[Stage, ...] = ()
        self._turn = 0

    @property
    def data_report(self) -> DataReport | None:
        """What became of every row of the user's files; `None` without `data`."""
        return None if self._dataset is None else self._dataset.report

    @property
    def base_rate(self) -> float:
        """Share of yes among the training questions of the files, or among synthetic ones."""
        if self._dataset is not None:
            return self._dataset.base_rate
        return share_of_yes(self.level, self.families)

    def size(self, split: str = "train") -> int | None:
        """Return how many Tasks a split of the files holds; `None` without `data`: no end to them.

        Raises:
            OptionError: if the split is unknown.
        """
        endless = super().size(split)
        return endless if self._dataset is None else len(self._dataset.records[split])

    def task(self, split: str = "train", index: int = 0) -> Task:
        """Return the Task at `index` of `split`: of the files if there are any, or else drawn.

        Raises:
            OptionError: if the split is unknown, or the index negative or beyond the files' split.
        """
        if self._dataset is None:
            return super().task(split, index)
        size = self.size(split)
        if isinstance(index, bool) or not isinstance(index, int | np.integer) or index < 0:
            raise OptionError(f"index must be an integer >= 0, got {index!r}")
        records = self._dataset.records[split]
        if index >= len(records):
            raise OptionError(
                f"{split!r} holds {size} questions (cutoff {self._dataset.report.cutoff}), "
                f"got index {index}"
            )
        record = records[index]
        return Task.create(
            world=self.spec.id,
            level=self.level,
            split=split,
            index=int(index),
            instance=instance_of(record, show_prices=self._show_prices),
            answer=answer_of(record),
        )

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
        stages = stages_of(task, self.score, self.label)
        value = sum(stage.best for stage in stages) / len(stages)
        exact = all(stage.question.predictive is not None for stage in stages)
        return {_ROLE: Optimum(FORM_SHARE + (1.0 - FORM_SHARE) * value, exact)}

    def _load(
        self,
        data: str | Path | Sequence[str | Path] | None,
        cutoff: str | None,
        family: str | Sequence[str] | None,
    ) -> Dataset | None:
        """Read the user's files, and refuse options that would have no effect."""
        if data is None:
            if cutoff is not None or self._show_prices:
                raise OptionError("cutoff and show_prices are options of data, and there is none")
            return None
        if family is not None or self.label != "outcome" or self.level != self.spec.levels[0]:
            raise OptionError(
                "data comes without family and with level "
                f"{self.spec.levels[0]!r} and label 'outcome', got family={family!r}, "
                f"level={self.level!r}, label={self.label!r}"
            )
        return load_dataset(data, cutoff)

    def _drawing_options(self) -> tuple[object, ...]:
        return () if self.families == LEVELS[self.level].families else self.families

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return draw(rng, self.families, LEVELS[self.level])

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return solve(instance, rng)

    def _begin(self, task: Task) -> Turn:
        self._stages = stages_of(task, self.score, self.label)
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
