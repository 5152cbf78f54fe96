"""How a Task is asked and scored, worked out once: a step then only reads a reply and scores it."""

from functools import lru_cache
from typing import Any, NamedTuple, Self

from tokengym.envs.core.errors import OptionError, TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.forecasting.data.ask import FAMILY, question_of
from tokengym.envs.forecasting.prompt import opening
from tokengym.envs.forecasting.questions import REPLAYS, Question, questions
from tokengym.rewards.scoring import SCORES, Forecast


class Stage(NamedTuple):
    """One turn of a Task.

    Attributes:
        text: what is new to read.
        question: what is asked.
        weights: the outcomes' weights a forecast is scored against.
        best: the highest expected score of any forecast.
    """

    text: str
    question: Question
    weights: Forecast
    best: float

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Stage itself."""
        return self


def replays(label: str) -> int:
    """Return how many drawn outcomes a label averages.

    Raises:
        OptionError: if there is no such label.
    """
    if label in ("outcome", "expected"):
        return 1
    kind, _, count = label.partition(":")
    if kind == "replay" and count.isascii() and count.isdigit() and 1 <= int(count) <= REPLAYS:
        return int(count)
    raise OptionError(
        f"label must be 'outcome', 'expected' or 'replay:K' with K in 1..{REPLAYS}, got {label!r}"
    )


@lru_cache(maxsize=4096)
def stages_of(task: Task, score: str, label: str) -> tuple[Stage, ...]:
    """Return the turns of a Task under a score and a label.

    Raises:
        TaskError: if the Task is not one that a ForecastWorld gives.
    """
    rule = SCORES[score]
    try:
        asked, drawn = _asked(task, label)
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


def _asked(task: Task, label: str) -> tuple[tuple[Question, ...], Forecast]:
    """Return the question of each turn, and how often each outcome came."""
    if task.instance["family"] == FAMILY:
        question = question_of(task.instance)
        happened, count = task.answer["outcome"], question.options or 2
        if happened not in range(count):
            raise ValueError(f"the outcome must be below {count}, got {happened!r}")
        return (question,), tuple(float(outcome == happened) for outcome in range(count))
    asked = questions(task.instance)
    return asked, _shares(task.answer["outcomes"][: replays(label)], asked[-1].options or 2)


def _shares(outcomes: str, count: int) -> Forecast:
    """Return how often each of `count` outcomes occurs among `outcomes`, one digit each."""
    counts = [outcomes.count(str(outcome)) for outcome in range(count)]
    if not outcomes or sum(counts) != len(outcomes):
        raise ValueError(f"outcomes must be digits below {count}, got {outcomes!r}")
    return tuple(count / len(outcomes) for count in counts)
