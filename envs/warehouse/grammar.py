"""Reading a reply of the shift lead: a trip, a wait, lines to reorder, or a price."""

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

from tokengym.envs.core.form import nearness
from tokengym.envs.core.grammar import (
    IS,
    SEVERAL,
    Grammar,
    Reading,
    complaint,
    last_command,
    remembered,
    statements,
)
from tokengym.envs.warehouse.layout import slot_name

_GAP = r"[ \t]*+"
_ORDER = r"O\d{1,4}+(?!\d)"
_NEXT_ORDER = rf"{_GAP}[,;&+]?+{_GAP}(?:and\b{_GAP})?+"
_SLOT = r"(?:\d{1,2}+@)?+A\d{1,3}+-\d{1,3}+(?!\d)"
_NUMBERED = rf"(?:{_GAP}#?(?P<number>\d{{1,2}}+)(?={_GAP}[:.)]))?"
"""A trip's number in a plan."""
_NEXT_SLOT = rf"{_GAP}(?:[,;]|->|>|\u2192)?+{_GAP}(?:(?:and|then)\b{_GAP})?+"
_UNIT = r"(?:[ \t]++(?:time[ \t]++)?+units?\b)?+"
_PICK = Grammar(
    "TRIP|WAIT|DONE",
    rf"TRIP{_NUMBERED}{IS}[(\[]?+{_GAP}({_ORDER}(?:{_NEXT_ORDER}{_ORDER}){{0,63}}+){_GAP}[)\]]?+"
    rf"(?:{_GAP}(?:[:|]|via\b|(?=[(\[])){_GAP}[(\[]?+{_GAP}"
    rf"({_SLOT}(?:{_NEXT_SLOT}{_SLOT}){{0,63}}+){_GAP}[)\]]?+)?+"
    rf"|WAIT{IS}(?:for[ \t]++)?+([1-9]\d{{0,2}}+)(?!\d){_UNIT}|DONE\b",
    "TRIP",
)
_NO_ITEM = r"(?!(?:about|around|roughly|approximately|maybe|perhaps|only|another|it|them|and)\b)"
_OF = rf"{_GAP}(?:units?\b{_GAP})?+of[ \t]++(?:item[ \t]++)?+"


def _item(begin: str) -> str:
    """Return the pattern of an item with its units, each in a group that begins so."""
    sku = rf"(?<![A-Z0-9_]){_NO_ITEM}{begin}[A-Z][A-Z0-9_]{{0,15}}+)"
    count = rf"{begin}\d{{1,4}}+)(?!\d)"
    return rf"(?:{sku}{IS}(?<![A-Z0-9_]){count}{_UNIT}|{count}{_OF}{sku})"


_ITEM = _item("(?:")  # `re` of Python 3.11 fails on groups that capture in possessive ones
_NEXT_ITEM = rf"{_GAP}(?:[,;&]{_GAP}(?:and\b)?+|and\b){_GAP}"
_REORDER = Grammar("REORDER", rf"REORDER{IS}(?:(NONE)\b|({_ITEM}(?:{_NEXT_ITEM}{_ITEM}){{0,63}}+))")
_QUOTE = Grammar(
    "QUOTE|REFUSE",
    rf"QUOTE{IS}\$?{_GAP}([1-9]\d{{0,2}}+)(?:\.0{{1,2}}+)?+(?!\d)"
    r"(?:[ \t]*+\$|[ \t]++(?:USD|dollars?))?+(?:[ \t]*+(?:per|and|/)[ \t]*+(?:bay|month))*+"
    r"|REFUSE\b",
    "QUOTE",
)
_ORDER_NAME = re.compile(r"O\d{1,4}", re.ASCII)
_UNITS_OF_ITEM = re.compile(_item("("), re.IGNORECASE | re.ASCII)
_SLOT_NAME = re.compile(r"A\d{1,3}-\d{1,3}", re.IGNORECASE | re.ASCII)

_PICK_FORMS = ("TRIP O0,O0", "TRIP O0: A0-0, A0-0", "WAIT 0")
_REORDER_FORM = "REORDER S0 0"
_QUOTE_FORMS = ("QUOTE 00", "REFUSE")

PICK_WORDS = (
    "one line, TRIP with orders, a colon and their slots in walking order; or WAIT and a time; or "
    "DONE"
)
REORDER_WORDS = (
    "a line for each item to reorder, REORDER with the item and a number of units; or REORDER NONE"
)
QUOTE_WORDS = "one line, QUOTE and a price, or REFUSE"
"""The forms of replies."""

FIRST_OF_PLAN = "Your reply held a plan of several trips; trip 1 counts."
"""Remark of the next Turn on a plan: each reply is one trip."""

MOST_WAIT = 999
"""Longest wait one reply can ask for."""

_plain_slot = lru_cache(maxsize=65536)(slot_name)


class Trip(NamedTuple):
    """Orders to pick together, and slots in walking order; no slots stand for the S-shape."""

    ids: tuple[str, ...]
    stops: tuple[str, ...]


class Wait(NamedTuple):
    """Time to let pass, 1 to 999."""

    time: int


class EndShift(NamedTuple):
    """Leave what is still open and end the shift."""


Command = Trip | Wait | EndShift
_NONE = "NONE"
"""Stands for no item."""


@remembered
def read_pick(text: str, *, complete: bool = True) -> Reading[Command]:
    """Return the command of the last statement.

    The reply is malformed if there is none, or if it is unreadable or holds two commands that
    differ.

    Args:
        text: a whole reply, of any content.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    match, said = _first_of_plan(text, complete) or last_command(_PICK, text, complete=complete)
    if match is None:
        return Reading(None, complaint(text, PICK_WORDS, _PICK, complete=complete))
    _, ids, stops, time = match.groups()
    if ids is not None:
        trip = Trip(
            tuple(_ORDER_NAME.findall(ids.upper())),
            tuple(map(_plain_slot, _SLOT_NAME.findall(stops))) if stops else (),
        )
        return Reading(trip, said)
    return Reading(EndShift() if time is None else Wait(int(time)), said)


def _first_of_plan(text: str, complete: bool) -> Reading[re.Match[str]] | None:
    """Return trip 1 of a plan of numbered trips; `None` if the last statement is of no plan."""
    trips = (each.command for each in statements(_PICK, text, complete=complete))
    last = next(trips, None)
    if last is None or last["number"] in (None, "1"):
        return None
    first = next((trip for trip in trips if trip and trip["number"] == "1"), None)
    return first and Reading(first, FIRST_OF_PLAN)


def pick_nearness(text: str) -> float:
    """Return how near a malformed reply is to a trip or a wait, in [0, 1]."""
    return max(nearness(text, form) for form in _PICK_FORMS)


def write_pick(command: Command) -> str:
    """Write a command as a reply."""
    if isinstance(command, EndShift):
        return "DONE"
    if isinstance(command, Wait):
        return f"WAIT {command.time}"
    route = f": {', '.join(command.stops)}" if command.stops else ""
    return f"TRIP {','.join(command.ids)}{route}"


@remembered
def read_reorder(
    text: str, *, items: int = 0, complete: bool = True
) -> Reading[Sequence[tuple[str, int]]]:
    """Return the units to reorder by item; a later line for an item replaces an earlier one.

    `REORDER NONE` takes back the lines before it. An unreadable statement, or one that contradicts
    itself, leaves open which lines it takes back: it is passed over only if readable ones follow
    and none precede. The reply is malformed if it is not passed over, if there is no statement, or
    if another line reorders an item that no statement names.

    Args:
        text: a whole reply, of any content.
        items: number of items; a reply that was cut off must have named all.
        complete: `False` if it was cut off.
    """
    lines: dict[str, int] | None = None
    passed_over, said = False, ""
    malformed = partial(complaint, text, REORDER_WORDS, _REORDER, complete=complete)
    for _, _, found in statements(_REORDER, text, complete=complete):
        pairs = [pair for match in found for pair in _units_of(match)]
        units = dict(pairs)
        if not units or len(units) < len(set(pairs)) or (_NONE in units and len(units) > 1):
            if lines is None:
                return Reading(None, malformed())
            passed_over = True
        elif passed_over:
            return Reading(None, malformed())
        elif _NONE in units:
            return Reading(tuple((lines or {}).items()), said)
        else:
            known = lines or {}
            said = said or SEVERAL * any(known.get(sku, n) != n for sku, n in units.items())
            lines = {**units, **known}
    named = {sku for match in _REORDER.mentioned(text) for sku, _ in _units_of(match)}
    if lines is None or not named <= lines.keys() or (not complete and len(lines) < items):
        return Reading(None, malformed())
    return Reading(tuple(lines.items()), said)


def _units_of(match: re.Match[str]) -> list[tuple[str, int]]:
    none, items = match.groups()
    if none:
        return [(_NONE, 0)]
    found = _UNITS_OF_ITEM.findall(items.upper())
    return [(sku or of, int(units or number)) for sku, units, number, of in found]


def reorder_nearness(text: str, items: int) -> float:
    """Return how near a malformed reply is to a line of units for each of `items`, in [0, 1]."""
    return nearness(text, *[_REORDER_FORM] * items)


def read_quote(text: str, *, complete: bool = True) -> Reading[int]:
    """Return the price of the last statement, 0 for `REFUSE`.

    The reply is malformed if there is none, or if it is unreadable or holds two prices.

    Args:
        text: a whole reply, of any content.
        complete: `False` if it was cut off: then the lines count that had ended.
    """
    match, said = last_command(_QUOTE, text, complete=complete)
    if match is None:
        return Reading(None, complaint(text, QUOTE_WORDS, _QUOTE, complete=complete))
    return Reading(int(match[1] or 0), said)


def quote_nearness(text: str) -> float:
    """Return how near a malformed reply is to a quote, in [0, 1]."""
    return max(nearness(text, form) for form in _QUOTE_FORMS)


def write_quote(price: int) -> str:
    """Write a price as a reply, 0 to turn the customer away."""
    return f"QUOTE {price}" if price else "REFUSE"


def write_reorder(lines: Sequence[tuple[str, int]]) -> str:
    """Write units to reorder by item as a reply; items with 0 units are left out."""
    return "\n".join([f"REORDER {sku} {units}" for sku, units in lines if units]) or "REORDER NONE"
