"""Reading a reply of the shift lead: a trip, a wait, or lines to reorder."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.core.grammar import last_match
from tokengym.envs.warehouse.layout import slot_name

_GAP = r"[ \t]*,[ \t]*"
_ORDERS = rf"O\d{{1,4}}(?:{_GAP}O\d{{1,4}}){{0,63}}"
_SLOTS = rf"A\d{{1,3}}-\d{{1,3}}(?:{_GAP}A\d{{1,3}}-\d{{1,3}}){{0,63}}"
_PICK = re.compile(
    rf"TRIP[ \t]+({_ORDERS})(?:[ \t]*:[ \t]*({_SLOTS}))?|WAIT[ \t]+([1-9]\d{{0,2}})|DONE",
    re.IGNORECASE | re.ASCII,
)
_REORDER = re.compile(
    r"REORDER[ \t]+(?:(NONE)|([A-Z][A-Z0-9_]{0,15})[ \t]+([1-9]\d{0,3}))", re.IGNORECASE | re.ASCII
)

_NONE = ("", 0)

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


def read_pick(text: str, *, complete: bool) -> Command | None:
    """Return the command of the last matching line; `None` if there is none or it was cut off."""
    match = last_match(_PICK, text) if complete else None
    if match is None:
        return None
    ids, stops, time = match.groups()
    if ids is not None:
        return Trip(
            tuple(ids.upper().replace(" ", "").replace("\t", "").split(",")),
            tuple(map(_plain_slot, stops.replace(" ", "").replace("\t", "").split(",")))
            if stops
            else (),
        )
    return Done() if time is None else Wait(int(time))


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

    `REORDER NONE` takes back the lines before it. `None` stands for no matching line, or for a
    reply that was cut off.
    """
    if not complete:
        return None
    read = _known_line if len(text) <= _SHORT else _reorder_line
    matched = [*filter(None, map(read, text.split("\n")))]
    if not matched:
        return None
    lines = dict(matched)
    if _NONE[0] in lines:
        last = len(matched) - matched[::-1].index(_NONE)
        lines = dict(matched[last:])
    return list(lines.items())


def _reorder_line(line: str) -> tuple[str, int] | None:
    """Return item and units of a line, `_NONE` for `REORDER NONE`; `None` if it does not match."""
    match = _REORDER.fullmatch(line.strip())
    if match is None:
        return None
    return _NONE if match[1] is not None else (match[2].upper(), int(match[3]))


_SHORT = 256
"""Characters of a reply up to which its lines are cached: few different ones occur."""
_known_line = lru_cache(maxsize=4096)(_reorder_line)


def write_reorder(lines: Sequence[tuple[str, int]]) -> str:
    """Write units to reorder by item as a reply; items with 0 units are left out."""
    return "\n".join([f"REORDER {sku} {units}" for sku, units in lines if units]) or "REORDER NONE"
