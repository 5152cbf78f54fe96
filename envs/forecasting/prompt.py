"""The instructions around a question; its own text comes from the family or the record."""

from tokengym.rewards.scoring import LOG_FLOOR

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of the outcomes of a question with several."""

FORM = "Probability: 0.137"
"""A well-formed answer to a yes/no question."""

AGAIN = "Forecast again, in the same form."
"""The request after news."""


def form(options: int) -> str:
    """Return a well-formed answer to a question with `options` outcomes; 0 means yes/no."""
    if not options:
        return FORM
    return "Probabilities: " + ", ".join(f"{name} {1 / options:.3f}" for name in LETTERS[:options])


def opening(question: str, options: int, *, negated: bool, score: str) -> str:
    """Return the first text: the form of the answer, then the question.

    Args:
        question: the question in words.
        options: number of outcomes; 0 means yes/no.
        negated: whether the probability of no is asked for.
        score: name of the score; the text states only what a forecaster must know of it.
    """
    asked = "How likely is each?" if options else f"How likely is {'no' if negated else 'yes'}?"
    clipped = f" Less than {LOG_FLOOR:g} counts as {LOG_FLOOR:g}." if score == "log" else ""
    return (
        f"{asked}{clipped} End with one line of three decimals like\n{form(options)}\n\n{question}"
    )
