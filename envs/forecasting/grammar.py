"""Reading a forecast: the last line that begins with `Probability` or `Probabilities` counts.

Accepted numbers are `0.137`, `.5`, `1`, `1e-3` and `13.7%`; of a yes/no question `~0.5` and `1/2`
too, and `(yes)` or `of yes` after the word. A last line without a number, or with one outside
[0, 1], is not passed over for an earlier one. Several probabilities are divided by their sum.
"""

from functools import lru_cache

from tokengym.envs.core.form import nearness
from tokengym.envs.core.grammar import (
    IS,
    NEXT,
    SHARE,
    Grammar,
    Reading,
    complaint,
    joined_shares,
    last_command,
    normalised,
    remembered,
    share,
)
from tokengym.rewards.scoring import Forecast

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Names of the outcomes of a question with several."""

_WORDS = "probability|probabilities"
_GAP = r"[ \t]*+"
_FRACTION = rf"(\d{{1,4}}+){_GAP}/{_GAP}([1-9]\d{{0,3}}+)(?!\d|\.\d)"
_OF = rf"{_GAP}(?:\({{0}}\)|of {{0}}|that (?:the answer|it) is {{0}})"
_SUM_TOLERANCE = 0.02
"""Three decimals of up to 26 outcomes sum to 1 within 26 · 0.0005 = 0.013."""


@remembered
def read_forecast(
    text: str, options: int, *, negated: bool = False, complete: bool = True
) -> Reading[Forecast]:
    """Return the forecast of a reply.

    Args:
        text: a whole reply, of any content.
        options: number of outcomes of the question; 0 means yes/no.
        negated: whether the probability of no is asked for.
        complete: `False` if the reply was cut off.
    """
    grammar = _grammar(options, negated)
    if options:
        text = joined_shares(text, "Probabilities", tuple(LETTERS[:options]))
    match, several = last_command(grammar, text, complete=complete)
    if match is None:
        return Reading(None, complaint(text, describe_form(options), grammar, complete=complete))
    cells = match.groups()
    if options:
        forecast, rescaled = normalised(list(map(share, cells[::2], cells[1::2])), _SUM_TOLERANCE)
        if forecast is not None:
            return Reading(forecast, " ".join(filter(None, (several, rescaled))))
        wrong = " and sum to 1"
    else:
        above, below, stated, percent = cells
        value = int(above) / int(below) if above else share(stated, percent)
        if 0.0 <= value <= 1.0:
            return Reading((1.0 - value, value), several)
        wrong = f", {f'{above}/{below}' if above else stated + percent} is none"
    return Reading(
        None,
        f"Malformed reply: probabilities lie between 0 and 1{wrong}. "
        f"Expected: {describe_form(options)}",
    )


def nearness_of_forecast(text: str, options: int) -> float:
    """Grade a malformed reply by its nearness to the form, in [0, 1].

    Args:
        text: a whole reply, of any content.
        options: number of outcomes of the question; 0 means yes/no.
    """
    return nearness(text, write_forecast((0.0,) * (options or 2), options))


def describe_form(options: int) -> str:
    """Return the form of a well-formed reply in words; it holds no answer to copy.

    Args:
        options: number of outcomes of the question; 0 means yes/no.
    """
    if not options:
        return "one line with the word Probability, a colon and a number from 0 to 1"
    names = f"{LETTERS[0]} to {LETTERS[options - 1]}"
    return (
        "one line with the word Probabilities, a colon, and each letter from "
        f"{names} with its number, with commas between; the numbers sum to 1"
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
    cells = (f"{name} {p:.{decimals}f}" for name, p in zip(LETTERS, forecast, strict=False))
    return f"Probabilities: {', '.join(cells)}"


@lru_cache
def _grammar(options: int, negated: bool) -> Grammar:
    """Return the grammar of an answer: for each outcome a number, maybe with a percent sign."""
    if not options:
        of = _OF.format("no" if negated else "yes")
        return Grammar(_WORDS, rf"probability(?:{of})?+{IS}(?:{_FRACTION}|{SHARE})", "probability")
    cells = NEXT.join(rf"{name}{IS}{SHARE}" for name in LETTERS[:options])
    return Grammar(_WORDS, rf"probabilities{IS}[(\[]?+{cells}[)\]]?+")
