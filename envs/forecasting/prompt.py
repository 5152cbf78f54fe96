"""The instructions around a question; its own text comes from the family or the record."""

import numpy as np

from tokengym.envs.forecasting.grammar import write_forecast
from tokengym.rewards.scoring import LOG_FLOOR

AGAIN = "Forecast again, in the same form."
"""The request after news."""


def opening(
    question: str, options: int, *, negated: bool, score: str, rng: np.random.Generator
) -> str:
    """Return the first text: the form of the answer, then the question.

    Args:
        question: the question in words.
        options: number of outcomes; 0 means yes/no.
        negated: whether the probability of no is asked for.
        score: name of the score; the text states only what a forecaster must know of it.
        rng: draws the numbers of the example, which say nothing about the answer.
    """
    asked = "How likely is each?" if options else f"How likely is {'no' if negated else 'yes'}?"
    clipped = f" Less than {LOG_FLOOR:g} counts as {LOG_FLOOR:g}." if score == "log" else ""
    form = example(options, rng)
    return f"{asked}{clipped} End with one line of three decimals like\n{form}\n\n{question}"


def example(options: int, rng: np.random.Generator) -> str:
    """Return a well-formed answer with made-up numbers.

    Args:
        options: number of outcomes; 0 means yes/no.
        rng: draws the numbers, uniform over all forecasts.
    """
    return write_forecast(tuple(rng.dirichlet([1.0] * (options or 2)).tolist()), options)
