"""Reading a reply of the operator: a power for each device."""

import math
from collections.abc import Sequence
from functools import cache

from tokengym.envs.core.grammar import IS, NUMBER, SHORT, Grammar, number, remembered, statements
from tokengym.envs.energy.step_result import Commands


def read_commands(text: str, devices: tuple[str, ...], *, complete: bool) -> Commands | None:
    """Return the power of each device in kW, 0 for one not named.

    A statement replaces what was said before of every device that it names. `None` if no statement
    names any, if the last one for a device is unreadable or gives some device two powers, or if a
    power is too large for a number.

    Args:
        text: a whole reply, of any content.
        devices: names of the devices.
        complete: `False` if the reply was cut off; it then commands nothing.
    """
    if not complete:
        return None
    return (_known if len(text) <= SHORT else _read)(text, devices)


def _read(text: str, devices: tuple[str, ...]) -> Commands | None:
    grammar = _grammar(devices)
    powers: dict[str, float] = {}
    for line, matches in statements(grammar, text):
        pairs = {(match[1].upper(), number(match[2])) for match in matches}
        on_line = dict(pairs)
        if on_line and len(on_line) == len(pairs):
            powers = on_line | powers
        elif not powers.keys() >= set(grammar.words.findall(line.upper())):
            return None
        if len(powers) == len(devices):
            break
    if not powers or not all(map(math.isfinite, powers.values())):
        return None
    return tuple(powers.get(device, 0.0) for device in devices)


_known = remembered(_read)


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
    return Grammar(words, rf"({words}){IS}({NUMBER})(?:[ \t]*+(?:kW|kilowatts?)\b)?")
