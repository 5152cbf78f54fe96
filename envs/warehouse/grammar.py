"""Reading a reply of the shift lead: a trip, a wait, lines to reorder, or a price."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.core.form import nearness
from tokengym.envs.core.grammar import last_match, lines_from_end, read_line
from tokengym.envs.warehouse.layout import slot_name

_GAP = r"[ \t]*+"
_ORDER = r"O\d{1,4}+(?!\d)"
_NEXT_ORDER = rf"{_GAP}(?:[,;&+]|and\b)?{_GAP}"
_SLOT = r"A\d{1,3}+-\d{1,3}+(?!\d)"
_NEXT_SLOT = rf"{_GAP}(?:[,;]|->|>|\u2192|and\b|then\b)?{_GAP}"
_UNIT = r"(?:[ \t]++(?:time[ \t]++)?+units?\b)?+"
_PICK = re.compile(
    rf"TRIP{_GAP}:?{_GAP}({_ORDER}(?:{_NEXT_ORDER}{_ORDER}){{0,63}}+)"
    rf"(?:{_GAP}:{_GAP}({_SLOT}(?:{_NEXT_SLOT}{_SLOT}){{0,63}}+))?+"
    rf"|WAIT{_GAP}:?{_GAP}(?:for[ \t]++)?+([1-9]\d{{0,2}}+)(?!\d){_UNIT}|DONE\b",
    re.IGNORECASE | re.ASCII,
)
_ITEM = rf"[A-Z][A-Z0-9_]{{0,15}}+{_GAP}[:=]?{_GAP}(?<![A-Z0-9_])\d{{1,4}}+(?!\d){_UNIT}"
_NEXT_ITEM = rf"{_GAP}(?:[,;&]|and\b){_GAP}"
_REORDER = re.compile(
    rf"REORDER{_GAP}:?{_GAP}(?:(NONE)\b|({_ITEM}(?:{_NEXT_ITEM}{_ITEM}){{0,63}}+))",
    re.IGNORECASE | re.ASCII,
)
_QUOTE = re.compile(
    rf"QUOTE{_GAP}:?{_GAP}\$?{_GAP}([1-9]\d{{0,2}}+)(?!\d)"
    r"(?:[ \t]*+\$|[ \t]++(?:USD|dollars?))?+|REFUSE\b",
    re.IGNORECASE | re.ASCII,
)
_ORDER_NAME = re.compile(r"O\d{1,4}", re.ASCII)
_SLOT_NAME = re.compile(r"A\d{1,3}-\d{1,3}", re.IGNORECASE | re.ASCII)
_UNITS_OF_ITEM = re.compile(r"([A-Z][A-Z0-9_]{0,15}+)[ \t:=]++(\d{1,4})", re.ASCII)

_PICK_FORMS = ("TRIP O0,O0", "TRIP O0: A0-0, A0-0", "WAIT 0")
_REORDER_FORM = "REORDER S0 0"
_QUOTE_FORMS = ("QUOTE 00", "REFUSE")

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


class Done(NamedTuple):
    """Leave what is still open and end the shift."""


Command = Trip | Wait | Done
_Units = tuple[tuple[str, int], ...]
"""Units by item, as a line orders them; `NONE` is no item."""
_NONE = "NONE"


def read_pick(text: str, *, complete: bool) -> Command | None:
    """Return the command of the last matching line.

    `None` if there is none, if that line holds two that differ, or if the reply was cut off.
    """
    if not complete:
        return None
    return _known_pick(text) if len(text) <= _SHORT else _last_pick(text)


def _last_pick(text: str) -> Command | None:
    match = last_match(_PICK, text)
    if match is None:
        return None
    ids, stops, time = match.groups()
    if ids is not None:
        return Trip(
            tuple(_ORDER_NAME.findall(ids.upper())),
            tuple(map(_plain_slot, _SLOT_NAME.findall(stops))) if stops else (),
        )
    return Done() if time is None else Wait(int(time))


def pick_nearness(text: str) -> float:
    """Return how near a malformed reply is to a trip or a wait, in [0, 1]."""
    return max(nearness(text, form) for form in _PICK_FORMS)


def write_pick(command: Command) -> str:
    """Write a command as a reply."""
    if isinstance(command, Done):
        return "DONE"
    if isinstance(command, Wait):
        return f"WAIT {command.time}"
    route = f": {', '.join(command.stops)}" if command.stops else ""
    return f"TRIP {','.join(command.ids)}{route}"


def read_reorder(text: str, *, complete: bool) -> list[tuple[str, int]] | None:
    """Return the units to reorder by item; a later line for an item replaces an earlier one.

    `REORDER NONE` takes back the lines before it. `None` stands for no matching line, a line that
    contradicts itself, or a reply that was cut off.
    """
    if not complete:
        return None
    read = _known_line if len(text) <= _SHORT else _reorder_line
    lines: dict[str, int] | None = None
    for found in map(read, reversed(list(lines_from_end(text)))):
        if found is None:
            continue
        units = dict(found)
        if len(units) < len(set(found)) or (_NONE in units and len(units) > 1):
            return None
        lines = {} if _NONE in units else {**(lines or {}), **units}
    return None if lines is None else list(lines.items())


def _reorder_line(line: str) -> _Units | None:
    """Return the units by item that a line orders; `None` if it does not match."""
    found: list[tuple[str, int]] = []
    for match in read_line(_REORDER, line):
        none, items = match.groups()
        if none:
            found.append((_NONE, 0))
        else:
            found += [(sku, int(units)) for sku, units in _UNITS_OF_ITEM.findall(items.upper())]
    return tuple(found) or None


def reorder_nearness(text: str, items: int) -> float:
    """Return how near a malformed reply is to a line of units for each of `items`, in [0, 1]."""
    return nearness(text, *[_REORDER_FORM] * items)


def read_quote(text: str, *, complete: bool) -> int | None:
    """Return the price of the last matching line, 0 for `REFUSE`.

    `None` if there is none, if that line holds two that differ, or if the reply was cut off.
    """
    match = last_match(_QUOTE, text) if complete else None
    if match is None:
        return None
    return int(match[1] or 0)


def quote_nearness(text: str) -> float:
    """Return how near a malformed reply is to a quote, in [0, 1]."""
    return max(nearness(text, form) for form in _QUOTE_FORMS)


def write_quote(price: int) -> str:
    """Write a price as a reply, 0 to turn the customer away."""
    return f"QUOTE {price}" if price else "REFUSE"


_SHORT = 256
"""Characters of a reply up to which it is cached: few different ones occur."""
_known_pick = lru_cache(maxsize=16384)(_last_pick)
_known_line = lru_cache(maxsize=4096)(_reorder_line)


def write_reorder(lines: Sequence[tuple[str, int]]) -> str:
    """Write units to reorder by item as a reply; items with 0 units are left out."""
    return "\n".join([f"REORDER {sku} {units}" for sku, units in lines if units]) or "REORDER NONE"
