"""The full prompt: the rules in sentences, around a question that its family or record words."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.forecasting.grammar import LETTERS
from tokengym.envs.forecasting.question import Question
from tokengym.rewards.scoring import LOG_FLOOR, ORDERED_SCORES

_SCORES: Mapping[str, str] = MappingProxyType(
    {
        "brier": "Your score is 1 minus {}",
        "log": (
            "Your score grows with the logarithm of what you gave to the true answer (less than "
            f"{LOG_FLOOR:g} counts as {LOG_FLOOR:g})"
        ),
        "spherical": (
            "Your score is what you gave to the true answer, divided by the root of the summed "
            "squares of all your probabilities"
        ),
        "ranked": (
            "The outcomes are in order. Your score is 1 minus the mean squared error of your "
            "cumulative probabilities: of A, of A or B, and so on"
        ),
        "ranked_upper": (
            "The outcomes are in order. Your score is 1 minus the weighted mean squared error of "
            "your cumulative probabilities: that of A weighs 1, of A or B 2, and so on"
        ),
    }
)
_COUNTS = {1: "once", 2: "twice"}
# Described, not shown: a model that learns from rewards alone copies a number it is shown.
_NUMBER = "<number from 0 to 1, three decimals>"


def opening(question: Question, *, turns: int, score: str) -> str:
    """Return the first text: the task, the question, the form of the answer.

    Args:
        question: the first question.
        turns: number of turns.
        score: name of the score.
    """
    error = "the squared error of your probability"
    if question.options:
        error = "half the summed squared errors of your probabilities"
    replies = f"You reply {_COUNTS.get(turns, f'{turns} times')}"
    if question.event is not None:
        replies += (
            ": each turn asks another question on the same facts. A quarter of the score is for "
            "answers that fit together: a question and its opposite sum to 1, a question is no "
            "likelier than one that it implies, and both of two and at least one of them sum to "
            "what the two do"
        )
    elif turns > 1:
        replies += ": now, and again after news"
    stated = score if question.ordered or score not in ORDERED_SCORES else "brier"
    return (
        f"You are a forecaster. {_instruction(question)} {_SCORES[stated].format(error)}; honest "
        f"probabilities score best, a reply in another form almost nothing. {replies}.\n\n"
        f"{question.text}\n\nReply with one line:\n{_form(question.options)}"
    )


def follow_up(question: Question) -> str:
    """Return the text of a later turn: news or another question, and the request to forecast."""
    again = "" if question.event is not None else " Forecast again."
    return f"{question.text}{again} {_instruction(question)}"


def _instruction(question: Question) -> str:
    if question.options:
        return (
            'Start your reply with "Probabilities:" and give each outcome, '
            f"{', '.join(LETTERS[: question.options])}, its probability as a number from 0 to 1 "
            "with three decimals; they sum to 1."
        )
    return (
        'Start your reply with "Probability:" and give the probability that the answer is '
        f"{'no' if question.negated else 'yes'} as a number from 0 to 1 with three decimals."
    )


def _form(options: int) -> str:
    if not options:
        return f"Probability: {_NUMBER}"
    return "Probabilities: " + ", ".join(f"{letter} {_NUMBER}" for letter in LETTERS[:options])
