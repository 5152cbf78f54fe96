"""Compiled Tasks: the texts of the turns, and the targets of the forecasts' scores."""

from collections.abc import Mapping
from typing import NamedTuple

from tokengym.envs.core.label_noise import outcomes_of_label
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.data.instance import FAMILY, question_of
from tokengym.envs.forecasting.desk import generator as desks
from tokengym.envs.forecasting.desk.compiled import CompiledDesk, compile_desk
from tokengym.envs.forecasting.question import Question, questions
from tokengym.envs.forecasting.texts import macros
from tokengym.rewards.scoring import Forecast, Formula, score_of


class CompiledTurn(NamedTuple):
    """One turn of a Task.

    Attributes:
        text: what is new to read.
        question: the question.
        weights: weights of the outcomes that a forecast is scored against.
        best: the highest expected score of any forecast.
        rule: the score of a forecast under weights.
        reference: what a yes/no forecast is compared with: the target and the base rate.
        desk: the archive that may be read before the answer; `None` where there is none.
    """

    text: str
    question: Question
    weights: Forecast
    best: float
    rule: Formula
    reference: Mapping[str, float]
    desk: CompiledDesk | None = None


CompiledTask = tuple[CompiledTurn, ...]
"""The turns of a Task under a score and a label."""


def compile_task(task: Task, score: str, label: str, prompt: str) -> CompiledTask:
    """Compile a Task for the `score`, `label` and `prompt` of a ForecastWorld.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError, AttributeError: if it is damaged.
    """
    if task.instance["family"] == desks.FAMILY:
        return (_desk_turn(task, score, label, prompt),)
    asked, drawn = _questions_and_outcomes(task, label, prompt)
    base = {"base_rate": rate} if (rate := task.answer.get("base_rate")) is not None else {}
    turns = []
    for text, question in zip(_texts(asked, task, score, prompt), asked, strict=True):
        happened = question.weigh(drawn)
        odds = question.predictive or happened
        weights = odds if label == "expected" else happened
        rule = score_of(score, ordered=question.ordered).formula
        reference = {} if question.options else {"label": weights[1], **base}
        turns.append(CompiledTurn(text, question, weights, rule(odds, odds), rule, reference))
    return tuple(turns)


def _desk_turn(task: Task, score: str, label: str, prompt: str) -> CompiledTurn:
    """Return the one turn of a desk: how the answer is scored given all notes, and the archive."""
    scored = score_of(score, ordered=False)
    desk = compile_desk(task.instance, task.answer["notes"], scored, prompt)
    drawn = _shares(task.answer["outcomes"][: outcomes_of_label(label)], 2)
    question = desk.question(desk.start)
    odds = question.predictive or drawn
    rule = scored.formula
    reference = {} if label == "expected" else {"label": drawn[1]}
    return CompiledTurn(desk.opening, question, drawn, rule(odds, odds), rule, reference, desk)


def _texts(asked: tuple[Question, ...], task: Task, score: str, prompt: str) -> list[str]:
    """Return the text of each turn."""
    words, (first, *later) = macros(f"prompt_{prompt}"), asked
    scored = score_of(score, ordered=first.ordered)
    opening = words.opening(first, len(asked), scored, task.fingerprint)
    return [opening, *map(words.follow_up, later)]


def _questions_and_outcomes(
    task: Task, label: str, prompt: str
) -> tuple[tuple[Question, ...], Forecast]:
    """Return the question of each turn, and the share under `label` of each outcome drawn."""
    if task.instance["family"] == FAMILY:
        question = question_of(task.instance)
        happened, count = task.answer["outcome"], question.options or 2
        if happened not in range(count):
            raise ValueError(f"the outcome must be below {count}, got {happened!r}")
        return (question,), tuple(float(outcome == happened) for outcome in range(count))
    asked = questions(task.instance, prompt)
    outcomes = task.answer["outcomes"][: outcomes_of_label(label)]
    return asked, _shares(outcomes, len(task.answer["p_bayes"]))


def _shares(outcomes: str, count: int) -> Forecast:
    """Return the share of each of `count` outcomes among `outcomes`, one digit each."""
    counts = [outcomes.count(str(outcome)) for outcome in range(count)]
    if not outcomes or sum(counts) != len(outcomes):
        raise ValueError(f"outcomes must be digits below {count}, got {outcomes!r}")
    return tuple(count / len(outcomes) for count in counts)
