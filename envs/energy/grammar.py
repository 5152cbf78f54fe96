"""Reading a reply of the operator: a power for each device."""

import math
import re
from collections.abc import Sequence
from functools import cache, partial

from tokengym.envs.core.grammar import (
    IS,
    NUMBER,
    SEVERAL,
    Grammar,
    Reading,
    complaint,
    number,
    remembered,
    statements,
)
from tokengym.envs.energy.step_result import Commands

_TIME = re.compile(
    r"([0-9]{1,2}(?::[0-9]{2})?)h|(?:hour |at )([0-9]{1,2}(?::[0-9]{2})?)|([0-9]{1,2}:[0-9]{2})",
    re.IGNORECASE,
)
_CHARGE = r"\(?((?:dis)?charg(?:es?|ing))\b\)?"


@remembered
def read_commands(
    text: str, devices: tuple[str, ...], *, now: str = "", complete: bool = True
) -> Reading[Commands]:
    """Return the power of each device in kW, 0 for one not named.

    A statement replaces earlier ones on every device that it names. The reply is malformed
    if no statement names any, if the last one for a device is unreadable or gives some device two
    powers, if a device that no statement names is commanded in some other line, or if a power is
    too large for a number. A reply that was cut off must have named all devices.

    Args:
        text: a whole reply, of any content.
        devices: names of the devices.
        now: time of day, as in `10` or `10:15`: lines for other times of a plan are passed over.
        complete: `False` if the reply was cut off.
    """
    grammar = _grammar(devices)
    malformed = partial(complaint, text, expected(devices), grammar, complete=complete)
    powers: dict[str, float] = {}
    said = ""
    for line, lead, matches in statements(grammar, text, complete=complete):
        if lead and (time := _TIME.search(lead)) and _label(time) != now:
            continue
        pairs = {(match[1].upper(), _power(match)) for match in matches}
        on_line = dict(pairs)
        if on_line and len(on_line) == len(pairs):
            said = said or SEVERAL * any(powers.get(key, p) != p for key, p in pairs)
            powers = on_line | powers
        elif not powers.keys() >= set(grammar.words.findall(line.upper())):
            return Reading(None, malformed())
    if not all(map(math.isfinite, powers.values())):
        return Reading(None, malformed())
    left = set(devices) - powers.keys()
    if left and (
        not complete
        or not powers
        or any(match[1].upper() in left for match in grammar.mentioned(text))
    ):
        return Reading(None, malformed())
    return Reading(tuple(powers.get(device, 0.0) for device in devices), said)


def _label(time: re.Match[str]) -> str:
    return time[time.lastindex or 0].removesuffix(":00").removeprefix("0") or "0"


def _power(match: re.Match[str]) -> float:
    """Return what a command says in kW: `discharge 1.5` is -1.5, `charge -1.5` no number."""
    _, before, stated, after = match.groups()
    power, word = number(stated or "0"), (before or after or "").lower()
    if word.startswith("dis"):
        return -abs(power)
    return math.nan if word and power < 0.0 else power


def write_commands(commands: Commands, devices: Sequence[str], *, decimals: int = 2) -> str:
    """Write a command for each device in the form `read_commands` reads."""
    lines = zip(devices, commands, strict=True)
    return "\n".join(f"{device} {_number(power, decimals)}" for device, power in lines)


def forms(devices: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a well-formed reply, with `0` for any digit."""
    return tuple(f"{device} 0.0" for device in devices)


def expected(devices: Sequence[str]) -> str:
    """Describe a well-formed reply in words."""
    lines = [f"{device} and a number of kW" for device in devices]
    if len(lines) == 1:
        return f"one line, {lines[0]}"
    return f"one line for each device: {'; '.join(lines)}"


def _number(power: float, decimals: int) -> str:
    text = f"{power:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


@cache
def _grammar(devices: tuple[str, ...]) -> Grammar:
    words = "|".join(devices)
    power = rf"({NUMBER})(?:[ \t]*+(?:kW|kilowatts?)\b)?(?:[ \t]*+{_CHARGE})?"
    command = rf"({words}){IS}(?:{_CHARGE}{IS})?+(?:{power}|(?:off|idle)\b)"
    return Grammar(words, command, devices[0] if len(devices) == 1 else "")
