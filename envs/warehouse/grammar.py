"""Reading a reply of the shift lead: a trip, a wait, or lines to reorder."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.core.grammar import all_matches, last_match
from tokengym.envs.warehouse.layout import slot_name

_GAP = r"[ \t]*,[ \t]*"
_ORDERS = rf"O\d{{1,4}}(?:{_GAP}O\d{{1,4}}){{0,63}}"
_SLOTS = rf"A\d{{1,3}}-\d{{1,3}}(?:{_GAP}A\d{{1,3}}-\d{{1,3}}){{0,63}}"
_PICK = re.compile(
    rf"TRIP[ \t]+({_ORDERS})[ \t]*:[ \t]*({_SLOTS})|WAIT[ \t]+([1-9]\d{{0,2}})|DONE",
    re.IGNORECASE | re.ASCII,
)
_REORDER = re.compile(
    r"REORDER[ \t]+(?:(NONE)|([A-Z][A-Z0-9_]{0,15})[ \t]+([1-9]\d{0,3}))", re.IGNORECASE | re.ASCII
)

MOST_WAIT = 999
"""Longest wait one reply can ask for."""

_plain_slot = lru_cache(maxsize=65536)(slot_name)


class Trip(NamedTuple):
    """Orders to pick together, and slots in walking order."""

    ids: tuple[str, ...]
    stops: tuple[str, ...]


class Wait(NamedTuple):
    """Time to let pass, 1 to 999."""

    time: int


class Done(NamedTuple):
    """Leave what is still open and end the shift."""


Command = Trip | Wait | Done


def read_pick(text: str, *, complete: bool) -> Command | None:
    """Return what the last matching line commands; `None` if no line does or it was cut off."""
    match = last_match(_PICK, text) if complete else None
    if match is None:
        return None
    ids, stops, time = match.groups()
    if time is not None:
        return Wait(int(time))
    if ids is None:
        return Done()
    return Trip(
        tuple([order.strip() for order in ids.upper().split(",")]),
        tuple([_plain_slot(stop.strip()) for stop in stops.split(",")]),
    )


def write(command: Command) -> str:
    """Write a command as a reply."""
    if isinstance(command, Done):
        return "DONE"
    if isinstance(command, Wait):
        return f"WAIT {command.time}"
    return f"TRIP {','.join(command.ids)}: {', '.join(command.stops)}"


def read_reorder(text: str, *, complete: bool) -> list[tuple[str, int]] | None:
    """Return the units to reorder by item; a later line for an item replaces an earlier one.

    `REORDER NONE` takes back the lines before it. `None` stands for no matching line, or for a
    reply that was cut off.
    """
    matches = all_matches(_REORDER, text) if complete else []
    if not matches:
        return None
    lines: dict[str, int] = {}
    for match in matches:
        if match[1] is not None:
            lines.clear()
        else:
            lines[match[2].upper()] = int(match[3])
    return list(lines.items())


def write_reorder(lines: Sequence[tuple[str, int]]) -> str:
    """Write units to reorder by item as a reply; items with 0 units are left out."""
    return "\n".join([f"REORDER {sku} {units}" for sku, units in lines if units]) or "REORDER NONE"
