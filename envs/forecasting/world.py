"""The forecasting world: questions with a probability for an answer, scored by a proper rule."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tokengym.envs.core.errors import OptionError, require_one_of
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.label_noise import outcomes_of_label
from tokengym.envs.core.optimum import Optimum
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import StopReason, Turn, expected_return
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.coherence import SHARE, incoherence
from tokengym.envs.forecasting.compiled import CompiledTask, CompiledTurn, compile_task
from tokengym.envs.forecasting.data.instance import answer_of, instance_of
from tokengym.envs.forecasting.data.load import Dataset, load_dataset
from tokengym.envs.forecasting.families import FAMILIES
from tokengym.envs.forecasting.generator import draw, draw_outcomes, share_of_yes
from tokengym.envs.forecasting.grammar import describe_form, nearness_of_forecast, read_forecast
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.question import Question
from tokengym.envs.intake.report import IntakeReport
from tokengym.rewards.bounds import dyadic
from tokengym.rewards.form import FORM_SHARE, form_of
from tokengym.rewards.scoring import ORDERED_SCORES, SCORES, Forecast

ROLE = "forecaster"
"""The one role."""
_EXPECTED = expected_return(ROLE)


class ForecastWorld(World[CompiledTask]):
    """One question, one probability, scored by a strictly proper rule.

    Description:
        Synthetic families of questions whose exact posterior predictive odds are known, or the
        resolved questions of a user's own files. `easy` asks three families, `hard` nine, and
        conjunctions, censored logs, irrelevant sentences and unstated priors. `expert` draws a
        hidden law for every question and shows resolved cases of it: which switches matter, which
        gauge counts when, what buttons do. `update` reveals more data in a second turn and asks
        again. `twins` asks five questions on two cases of
        one hidden law, one a turn, and also pays for answers that fit together. `desk` and
        `desk_errata` sell notes before the answer: `tokengym.envs.forecasting.desk_world`.

    Observation:
        The first turn states the form of the answer and the question; a second one brings news.

    Action:
        Any text. Its last line `Probability: 0.137` counts, or of a question with several outcomes
        `Probabilities: A 0.500, B 0.300, C 0.200`.

    Reward:
        0.05 + 0.95·S for a well-formed forecast, with S in [0, 1]; for one that is malformed or cut
        off 0 to 0.045 by its nearness to the form. Affine in S, it is as proper as S, and a
        malformed reply always costs more than a confident miss. In several turns each report
        earns an equal part of it. At `twins` a quarter of S is 1 less the mean breach of the laws
        that join five well-formed answers. It depends on the answers alone and is full for the
        exact posterior, which thus stays optimal.

    Episode end:
        After one report; two at `update`, five at `twins`.

    Args:
        spec: the world's declaration.
        level: `easy` by default.
        family: one name or several out of the level's families; all of them if `None`.
        score: `brier`, `log` (forecasts below 0.01 count as 0.01) or `spherical`; of outcomes in
            order also `ranked`, their default, or `ranked_upper`, which are `brier` elsewhere.
        label: what S is scored against. `outcome`: what happened. `replay:K`: the mean over K
            outcomes, K up to 64. `expected`: the probability given what is shown, free of noise.
        credit: report as `credit` what each reply was expected to earn less than the best one.
        data: files or folders of resolved questions to ask instead of synthetic ones: rows of
            `{question, asked_at, resolves_at, outcome}` as JSON, CSV or Parquet, a
            Prophet Arena CSV, or files of ForecastBench (both sets), Metaculus, Manifold,
            Polymarket or Autocast. They have the default level, one label (`outcome`), no families.
        cutoff: with `data`, the ISO 8601 date that separates training from test.
        columns: with `data`, headings of these fields, such as `question=Question,outcome=Answer`,
            where they have others than their synonyms, and `dates=day-first` or `month-first`.
        show_prices: with `data`, whether market prices are shown.
        prompt: `full` states the rules in sentences and lets a model think before it answers;
            `direct` is the same, asking for the answer alone; `terse` is short, for tiny models
            that were trained on it.

    Raises:
        OptionError: if an option or its value is not one of these.
        DataError: if no question of the files can be used.

    References:
        Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation.

    Version history:
        v1: fewer levels; prompts and the reading of replies changed.
        v0: first.
    """

    expected_form: ClassVar[str] = "Probability: 0.137"

    def __init__(
        self,
        spec: WorldSpec,
        level: str | None = None,
        *,
        family: str | Sequence[str] | None = None,
        score: str | None = None,
        label: str = "outcome",
        credit: bool = False,
        data: str | Path | Sequence[str | Path] | None = None,
        cutoff: str | None = None,
        columns: str | Mapping[str, str] | None = None,
        show_prices: bool = False,
        prompt: str = "full",
    ) -> None:
        super().__init__(spec, level, prompt=prompt)
        if score is not None:
            require_one_of("score", score, (*SCORES, *ORDERED_SCORES))
        outcomes_of_label(label)
        self.families = _families(family, self.level)
        self.label = label
        if credit and (data is not None or self.level == "twins"):
            raise OptionError(
                "credit=True needs exact probabilities of each question on its own: neither data "
                "nor the level 'twins'"
            )
        self._credits = credit
        self._show_prices = show_prices
        self._dataset = self._load(data, cutoff, columns, family)
        self.score = score or self._usual_score
        self._turn = 0
        self._expected = 0.0
        self._grown: dict[str, float] = {}
        self._stated: tuple[tuple[Question, float], ...] = ()

    @property
    def data_report(self) -> IntakeReport | None:
        """The report on every row of the user's files; `None` without `data`."""
        return None if self._dataset is None else self._dataset.report

    @property
    def base_rate(self) -> float:
        """Share of yes among the training questions of the files, or among synthetic ones."""
        if self._dataset is not None:
            return self._dataset.base_rate
        return share_of_yes(self.level, self.families)

    @property
    def _usual_score(self) -> str:
        """The score of a world whose option `score` is `None`."""
        if self._dataset is not None and self._dataset.ordered:
            return "ranked"
        return "brier"

    @property
    def question(self) -> Question:
        """The question of this turn.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        return self.compiled[self._turn].question

    @property
    def reply_form(self) -> ReplyForm:
        """One line with a probability, or one for each outcome."""
        return ReplyForm(describe_form(self.question.options), single_line=True)

    @property
    def best_forecast(self) -> Forecast:
        """The forecast with the highest expected reward: the posterior, or else the outcome.

        Raises:
            EpisodeStateError: before the first `start`.
        """
        turn = self.compiled[self._turn]
        return turn.question.predictive or turn.weights

    def optimum(self, task: Task) -> Mapping[str, Optimum]:
        """Return the expected return of the posterior predictive probabilities of each turn.

        Where no model of the world is known, it is the bound that only clairvoyance reaches.
        """
        turns = self.compile(task)
        value = sum(turn.best for turn in turns) / len(turns)
        if turns[0].question.event is not None:
            value += SHARE * (1.0 - value)
        exact = all(turn.question.predictive is not None for turn in turns)
        return {ROLE: Optimum(FORM_SHARE + (1.0 - FORM_SHARE) * value, exact)}

    def _load(
        self,
        data: str | Path | Sequence[str | Path] | None,
        cutoff: str | None,
        columns: str | Mapping[str, str] | None,
        family: str | Sequence[str] | None,
    ) -> Dataset | None:
        """Read the user's files, and refuse options that would have no effect."""
        if data is None:
            if cutoff is not None or columns is not None or self._show_prices:
                raise OptionError(
                    "cutoff, columns and show_prices are options of data, and there is none"
                )
            return None
        if family is not None or self.label != "outcome" or self.level != self.spec.levels[0]:
            raise OptionError(
                "data comes without family and with level "
                f"{self.spec.levels[0]!r} and label 'outcome', got family={family!r}, "
                f"level={self.level!r}, label={self.label!r}"
            )
        return load_dataset(data, cutoff, columns)

    def _sizes(self) -> Mapping[str, int] | None:
        dataset = self._dataset
        return None if dataset is None else {k: len(v) for k, v in dataset.records.items()}

    def _task_of_record(self, split: str, index: int) -> Task:
        assert self._dataset is not None
        record = self._dataset.records[split][index]
        instance = instance_of(record, show_prices=self._show_prices)
        return self._new_task(split, index, instance, answer_of(record, self._dataset.base_rate))

    def _scoring_options(self) -> Mapping[str, Any]:
        options = {"score": self.score, "label": self.label}
        usual = {"score": self._usual_score, "label": "outcome"}
        return {name: value for name, value in options.items() if value != usual[name]}

    def _drawing_options(self) -> tuple[object, ...]:
        return () if self.families == LEVELS[self.level].families else self.families

    def _draw(self, rng: np.random.Generator) -> Mapping[str, Any]:
        if not self.families:
            path = self.spec.class_path(self.level)
            raise OptionError(f"the level {self.level!r} is played by {path}; make_world makes it")
        return draw(rng, self.families, LEVELS[self.level])

    def _split_key(self, instance: Mapping[str, Any]) -> object:
        family = instance["family"]
        return [family, FAMILIES[family].split_key(instance["shown"])]

    def _solve(self, instance: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
        return draw_outcomes(instance, rng)

    def _compile_options(self) -> tuple[object, ...]:
        return self.score, self.label, self.prompt

    @classmethod
    def _compile(cls, task: Task, score: str, label: str, prompt: str) -> CompiledTask:
        return compile_task(task, score, label, prompt)

    def _begin(self, task: Task) -> Turn:
        self._turn = 0
        self._expected = 0.0
        self._grown = {}
        self._stated = ()
        return Turn(ROLE, self.compiled[0].text)

    def _respond(self, text: str, complete: bool) -> Turn:
        turns = self.compiled
        turn = turns[self._turn]
        options, negated = turn.question.options, turn.question.negated
        forecast, feedback = read_forecast(text, options, negated=negated, complete=complete)
        share = 1.0 / len(turns)
        if forecast is None:
            value = expected = 0.0
            near = nearness_of_forecast(text, turn.question.options)
            form = form_of(near)
            metrics = {"well_formed": 0.0, "form": near, **turn.reference}
        else:
            form = float(complete)
            value = turn.rule(forecast, turn.weights)
            expected = turn.rule(forecast, turn.question.predictive or turn.weights)
            metrics = self._measure(forecast, turn, value, expected) | {"form": form}
            if turn.question.event is not None:
                self._stated += ((turn.question, forecast[-1]),)
        weight = (1.0 - FORM_SHARE) * share
        terms = {"score": weight * value, "form": FORM_SHARE * share * form}
        predicted = weight * expected
        if self._credits:
            lost = weight * turn.best + FORM_SHARE * share * (1.0 - form)
            metrics["credit"] = predicted - lost
        if turn.question.event is not None:
            terms["score"] *= 1.0 - SHARE
            terms["coherence"] = 0.0
            if len(self._stated) == len(turns):
                breach = incoherence(self._stated)["incoherence"]
                terms["coherence"] = (1.0 - FORM_SHARE) * SHARE * (1.0 - breach)
            # In many turns what each one rounds would add up: a perfect return could pass 1.
            terms = {name: self._grow(name, part) for name, part in terms.items()}
            predicted = self._grow("expected", predicted * (1.0 - SHARE)) + terms["coherence"]
        self._expected += dyadic(predicted) + dyadic(terms["form"])
        if self._turn + 1 < len(turns):
            self._turn += 1
            news = turns[self._turn].text
            rewards, rounded = self._pay({ROLE: terms}, final=False)
            following = f"{feedback}\n{news}" if feedback else news
            return Turn(ROLE, following, rewards, rounded, metrics=metrics)
        reason = StopReason.MALFORMED if forecast is None else StopReason.COMPLETED
        if turn.question.predictive is not None:
            metrics[_EXPECTED] = self._expected
        if self._stated:
            metrics |= incoherence(self._stated)
        return self._end(ROLE, feedback, {ROLE: terms}, reason, metrics)

    def _grow(self, name: str, part: float) -> float:
        """Return by how much a sum over turns grows, where the sum lies on the grid."""
        before = self._grown.get(name, 0.0)
        self._grown[name] = before + part
        return dyadic(before + part) - dyadic(before)

    def _measure(
        self, forecast: Forecast, turn: CompiledTurn, value: float, expected: float
    ) -> dict[str, float]:
        """Return the metrics of a well-formed forecast."""
        metrics = {"well_formed": 1.0, "form": 1.0, "score": value, **turn.reference}
        if not turn.question.options:
            metrics["probability"] = forecast[1]
        if turn.question.predictive is not None:
            metrics["regret"] = turn.best - expected
        return metrics


def _families(family: str | Sequence[str] | None, level: str) -> tuple[str, ...]:
    offered = LEVELS[level].families
    if family is None:
        return offered
    names = (family,) if isinstance(family, str) else tuple(family)
    if not names or len(set(names)) != len(names) or not set(names) <= set(offered):
        raise OptionError(
            f"family must be one or several different ones of {list(offered)} at level {level!r}, "
            f"got {family!r}"
        )
    return names
