"""Reading a reply of the operator: a power for each device."""

import math
import re
from collections.abc import Sequence
from functools import cache

from tokengym.envs.core.grammar import NUMBER, lines_from_end, number, read_line
from tokengym.envs.energy.outcome import Commands


def read_commands(text: str, devices: tuple[str, ...], *, complete: bool) -> Commands | None:
    """Return the power of each device in kW, 0 for one not named.

    The last line that names a device counts for it. `None` if no line names any, if that line gives
    a device two powers, or if a power is too large for a number.

    Args:
        text: a whole reply, of any content.
        devices: names of the devices.
        complete: `False` if the reply was cut off; it then commands nothing.
    """
    if not complete:
        return None
    pattern = _pattern(devices)
    powers: dict[str, float] = {}
    for line in lines_from_end(text):
        on_line: dict[str, float] = {}
        for match in read_line(pattern, line):
            device, power = match[1].upper(), number(match[2])
            if device not in powers and on_line.setdefault(device, power) != power:
                return None
        powers = on_line | powers
        if len(powers) == len(devices):
            break
    if not powers or not all(map(math.isfinite, powers.values())):
        return None
    return tuple(powers.get(device, 0.0) for device in devices)


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
def _pattern(devices: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"({'|'.join(devices)})\s*+[:=]?\s*+({NUMBER})(?:[ \t]*+(?:kW|kilowatts?)\b)?",
        re.IGNORECASE | re.ASCII,
    )
