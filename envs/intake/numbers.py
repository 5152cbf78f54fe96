"""Reading numbers as tools write them, and nothing that only Python takes for one."""

import math
import re

_MISSING = re.compile(
    r"|[-\u2013\u2014.?]+|<na>|#?n/?a|n\.a\.|#n/a n/a|n/e|[-+]?nan|\(?null\)?|#null!|none|nil|\\n"
    r"|unknown|unavailable|undefined|missing|not available|no ?(?:data|value)"
    r"|-?1\.#(?:ind|qnan)|#(?:value|ref|num|div/0)!|#name\?"
)
"""Words for a missing value in a cell, in lower case: as spreadsheets, databases, pandas, R, Home
Assistant and statistical offices write it."""
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_WHOLE_AS_FLOAT = re.compile(r"\d+\.0", re.ASCII)


def read_number(value: object) -> float | None:
    """Return a finite number, or text in ASCII digits and a decimal point; `None` for all else.

    No underscores, grouped thousands or digits of other scripts; truth values are no numbers.
    """
    if isinstance(value, str):
        text = value.strip()
        if not _NUMBER.fullmatch(text):
            return None
        value = text
    elif isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def is_missing(value: object) -> bool:
    """Return whether a cell or field stands for no value."""
    if isinstance(value, str):
        return _MISSING.fullmatch(value.strip().lower()) is not None
    return value is None or (isinstance(value, float) and math.isnan(value))


def read_share(value: object) -> float | None:
    """Return a number as `read_number` does; text with a percent sign is that many hundredths."""
    if isinstance(value, str) and value.rstrip().endswith("%"):
        percent = read_number(value.rstrip()[:-1])
        return None if percent is None else percent / 100.0
    return read_number(value)


def whole_number(value: object) -> int | None:
    """Return a whole number, also where a tool wrote it as `1.0`; `None` for all else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = read_number(value)
    return int(number) if number is not None and number.is_integer() else None


def read_identifier(text: str) -> str:
    """Return an identifier without the `.0` that a tool puts on a column of numbers with gaps."""
    text = text.strip()
    return text[:-2] if _WHOLE_AS_FLOAT.fullmatch(text) else text
