"""Reading a forecast: the last line `Probability: X` counts, whatever was thought before it."""

import re

from tokengym.envs.core.grammar import complaint, last_match
from tokengym.envs.forecasting.prompt import FORM

_DECIMAL = r"(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:e[+-]?\d{1,3})?"
_NUMBER = rf"([+-]?(?:{_DECIMAL}|nan|inf(?:inity)?))"
# Possessive: a run of blanks is tried once, so that no reply takes more than linear time.
_MARKS = r"[\s*_`#>]*+"
_PROBABILITY = re.compile(
    rf"{_MARKS}probability{_MARKS}[:=]{_MARKS}{_NUMBER}\s*+(%?){_MARKS}\.?{_MARKS}",
    re.ASCII | re.IGNORECASE,
)


def read_probability(text: str, *, complete: bool = True) -> float | str:
    """Return the probability a reply states, or one line that says why it states none.

    Accepts `0.137`, `.5`, `1`, `1e-3` and `13.7%`, in any case and with Markdown marks around it.

    Args:
        text: a whole reply, of any content.
        complete: `False` if it was cut off; it then states nothing.
    """
    match = last_match(_PROBABILITY, text) if complete else None
    if match is None:
        return complaint(text, FORM, complete=complete)
    value = float(match[1])
    if match[2]:
        value /= 100.0
    if 0.0 <= value <= 1.0:
        return value
    stated = match[1] + match[2]
    return f"Malformed reply: a probability lies between 0 and 1, got {stated}. Expected: {FORM}"
