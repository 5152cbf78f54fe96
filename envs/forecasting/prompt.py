"""The words around a question. What is asked is the family's or the record's own text."""

FORM = "Probability: 0.137"
"""A well-formed answer to a yes/no question."""

_YES_NO = f"How likely is yes? End with one line of three decimals like\n{FORM}\n\n"
_OPPOSITE = "How likely is no? End with one line of three decimals like\n{FORM}\n\n"


def opening(question: str, *, negated: bool) -> str:
    """Return the first turn: what to answer and how, then the question."""
    return (_OPPOSITE if negated else _YES_NO) + question
