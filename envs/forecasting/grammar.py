"""Reading a forecast: the last line that states one counts, whatever precedes it.

Accepted numbers are `0.137`, `.5`, `1`, `1e-3` and `13.7%`, in any case of the word before them and
with Markdown marks around it. A number outside [0, 1] is not passed over for an earlier line.
"""

import re
from functools import lru_cache

from tokengym.envs.core.grammar import complaint, last_match
from tokengym.envs.forecasting.prompt import FORM, LETTERS, form
from tokengym.rewards.scoring import Forecast

_DECIMAL = r"(?:\d{1,60}(?:\.\d{0,60})?|\.\d{1,60})(?:e[+-]?\d{1,3})?"
_NUMBER = rf"([+-]?(?:{_DECIMAL}|nan|inf(?:inity)?))"
# Possessive: a run of blanks is tried once, so that no reply takes more than linear time.
_MARKS = r"[\s*_`#>]*+"
_PROBABILITY = re.compile(
    rf"{_MARKS}probability{_MARKS}[:=]{_MARKS}{_NUMBER}\s*+(%?){_MARKS}\.?{_MARKS}",
    re.ASCII | re.IGNORECASE,
)
_SUM_TOLERANCE = 0.02
"""Three decimals of up to 26 outcomes sum to 1 within 26 · 0.0005 = 0.013."""


def read_forecast(text: str, options: int, *, complete: bool = True) -> Forecast | str:
    """Return the forecast of a reply, or one line on why it has none.

    Args:
        text: a whole reply, of any content.
        options: number of outcomes of the question; 0 means yes/no.
        complete: `False` if the reply was cut off; it then states nothing.
    """
    if options:
        return _read_distribution(text, options, complete)
    match = last_match(_PROBABILITY, text) if complete else None
    if match is None:
        return complaint(text, FORM, complete=complete)
    value = _value(match[1], match[2])
    if 0.0 <= value <= 1.0:
        return (1.0 - value, value)
    return f"Malformed reply: {match[1]}{match[2]} is no probability. Expected: {FORM}"


def _read_distribution(text: str, options: int, complete: bool) -> Forecast | str:
    """Read `Probabilities: A 0.500, B 0.300, C 0.200`, each outcome once and in this order."""
    match = last_match(_distribution(options), text) if complete else None
    if match is None:
        return complaint(text, form(options), complete=complete)
    cells = match.groups()
    values = [_value(*cell) for cell in zip(cells[::2], cells[1::2], strict=True)]
    total = sum(values)
    if all(0.0 <= value <= 1.0 for value in values) and abs(total - 1.0) <= _SUM_TOLERANCE:
        return tuple(value / total for value in values)
    return (
        "Malformed reply: probabilities lie between 0 and 1 and sum to 1, "
        f"these sum to {total:.4g}. Expected: {form(options)}"
    )


def write_forecast(forecast: Forecast, options: int, *, decimals: int = 3) -> str:
    """Write a forecast in the form `read_forecast` reads.

    Args:
        forecast: probability of each outcome; of a yes/no question, of no and yes.
        options: number of outcomes of the question; 0 means yes/no.
        decimals: digits after the point.
    """
    if not options:
        return f"Probability: {forecast[1]:.{decimals}f}"
    cells = zip(LETTERS, forecast, strict=False)
    return "Probabilities: " + ", ".join(f"{name} {p:.{decimals}f}" for name, p in cells)


@lru_cache
def _distribution(options: int) -> re.Pattern[str]:
    cells = r"\s*+[,;]?\s*+".join(
        rf"{name}{_MARKS}[:=]?{_MARKS}{_NUMBER}\s*+(%?)" for name in LETTERS[:options]
    )
    return re.compile(
        rf"{_MARKS}probabilities{_MARKS}[:=]{_MARKS}{cells}{_MARKS}\.?{_MARKS}",
        re.ASCII | re.IGNORECASE,
    )


def _value(number: str, percent: str) -> float:
    return float(number) / 100.0 if percent else float(number)
