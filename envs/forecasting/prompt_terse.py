"""The terse prompt: the same in few words, for tiny models trained on it."""

import numpy as np

from tokengym.envs.forecasting.grammar import write_forecast
from tokengym.envs.forecasting.question import Question
from tokengym.rewards.scoring import LOG_FLOOR, ORDERED_SCORES


def opening(question: Question, *, score: str, rng: np.random.Generator) -> str:
    """Return the first text: the form of the answer, then the question.

    Args:
        question: the first question.
        score: name of the score; the text states only what a forecaster must know of it.
        rng: draws the numbers of the example, which say nothing about the answer.
    """
    asked = f"How likely is {'no' if question.negated else 'yes'}?"
    if question.options:
        asked = "How likely is each?"
    if question.ordered and score in ORDERED_SCORES:
        asked += " They are in order: near misses cost less."
    fitting = " Answers that fit together earn a quarter." if question.event is not None else ""
    clipped = f" Less than {LOG_FLOOR:g} counts as {LOG_FLOOR:g}." if score == "log" else ""
    form = f"End with one line of three decimals like\n{_example(question.options, rng)}"
    return f"{asked}{clipped}{fitting} {form}\n\n{question.text}"


def follow_up(question: Question) -> str:
    """Return the text of a later turn: news or another question, and the request to forecast."""
    if question.event is not None:
        return f"{question.text} In the same form."
    return f"{question.text} Forecast again, in the same form."


def _example(options: int, rng: np.random.Generator) -> str:
    """Return a well-formed answer; its numbers are uniform over all forecasts."""
    return write_forecast(tuple(rng.dirichlet([1.0] * (options or 2)).tolist()), options)
