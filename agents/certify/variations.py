"""Answers near a right one: wrong by little, or the same one written otherwise."""

import re
from collections.abc import Iterator
from decimal import Decimal

_NUMBER = re.compile(r"([+-]?)([0-9][0-9,]*)(\.[0-9]+)?(\s*[A-Za-z%°]+)?", re.ASCII)
_SEPARATOR = re.compile(r"\s*[,;]\s*|\s+")
_UNITS = {"km": "m", "m": "km", "kg": "g", "g": "kg", "h": "min", "min": "h", "s": "min"}
"""Units by others of the same dimension."""
_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_ROUNDING = 0.001
"""Relative difference up to which two decimal fractions may be one number, rounded."""
SWAPPED = "two items swapped"
"""Name of a variation that may be right, where order does not matter."""


def wrong(answer: str, tolerance: float = 0.0) -> dict[str, str]:
    """Return wrong answers near a right one, by how they are wrong.

    Args:
        answer: the right one, a number, with a unit perhaps, a list, or words.
        tolerance: numbers no further away than this, relative to the answer, are left out.
    """
    match = _NUMBER.fullmatch(answer.strip())
    near = dict(_wrong_numbers(match, tolerance) if match else _wrong_texts(answer.strip()))
    return {how: text for how, text in near.items() if text and text != answer.strip()}


def _wrong_numbers(match: re.Match[str], tolerance: float) -> Iterator[tuple[str, str]]:
    sign, whole, places, unit = (part or "" for part in match.groups())
    value = Decimal(f"{sign}{whole.replace(',', '')}{places}")
    digits = f"{sign}{whole}{places}"
    least = Decimal(max(tolerance, _ROUNDING if places else 0.0)) * abs(value)
    changed = {
        "ten times as much": value * 10,
        "the other sign": -value,
        "a digit more": Decimal(f"{sign}{whole.replace(',', '')}{places}7"),
        "one more": value + 1,
        "one less": value - 1,
        "5 % more": value + value / 20,
        "5 % less": value - value / 20,
    }
    if len(whole) > 1 or places:
        changed["a digit less"] = Decimal(digits.replace(",", "")[:-1].rstrip(".") or "0")
    for how, other in changed.items():
        if other != value and abs(other - value) > least:
            yield how, f"{other:f}{unit}"
    if unit:
        known = _UNITS.get(unit.strip())
        yield "another unit", digits + unit.replace(unit.strip(), known or f"k{unit.strip()}")
    # No part of them is the answer, which a grader of the first or the last number would read.
    added = next(n for n in (7, 9) if value not in (n, 2 * n))
    yield "a sum that is not evaluated", f"{value - added:f}+{added}{unit}"
    if value == value.to_integral_value():
        rest = next(
            n for n in range(5, 11) if (value - n) % 3 == 0 and 2 * value not in (2 * n, -n)
        )
        yield "a product that is not evaluated", f"{(value - rest) / 3:f}*3+{rest}{unit}"


def _wrong_texts(answer: str) -> Iterator[tuple[str, str]]:
    """Yield parts of a list or of a few words; replies of several lines have rules of their own."""
    if "\n" in answer:
        return
    opened = answer[:1] if answer[:1] in "([{" and answer[-1:] in ")]}" else ""
    inner = answer[1:-1] if opened else answer
    closed = answer[-1:] if opened else ""
    items = _SEPARATOR.split(inner.strip())
    found = _SEPARATOR.search(inner.strip())
    if len(items) > 1 and found:
        for how, kept in (
            ("one item of several", items[:1]),
            ("all items but the last", items[:-1]),
            (SWAPPED, [items[1], items[0], *items[2:]]),
        ):
            yield how, f"{opened}{found[0].join(kept)}{closed}"
    if len(answer) > 3 and re.fullmatch(r"[A-Za-z]+(?: [A-Za-z]+){,3}", answer):
        yield "its first half", answer[: len(answer) // 2]
        yield "a letter less", answer[:-1]


def same(answer: str) -> dict[str, str]:
    """Return other ways to write an answer, by what is done to it."""
    bare = answer.strip()
    match = _NUMBER.fullmatch(bare)
    ways = {"spaces around it": f"  {bare} ", "dollar signs of LaTeX": f"${bare}$"}
    if match is None or match[4]:
        cased = "\\" not in bare  # a command of LaTeX in capitals is another one, or none
        ways |= {"upper case": bare.upper(), "lower case": bare.lower()} if cased else {}
        ways |= {"a space behind commas": re.sub(r",\s*", ", ", bare)}
        ways |= {"no space behind commas": re.sub(r",\s+", ",", bare)}
    else:
        sign, whole, places, _ = (part or "" for part in match.groups())
        plain = f"{sign}{whole.replace(',', '')}{places}"
        ways |= {
            "a zero more after the point": plain + ("0" if places else ".0"),
            "a plus sign": plain if sign else f"+{plain}",
            "an exponent": f"{plain}e0",
            "no zero before the point": re.sub(r"^([+-]?)0\.", r"\1.", plain),
            "commas between thousands": f"{Decimal(plain):,f}",
        }
        if plain in map(str, range(len(_WORDS))):
            ways["words"] = _WORDS[int(plain)]
    return {how: text for how, text in ways.items() if text != answer}
