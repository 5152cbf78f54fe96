"""Reading a reply of the operator: a power for each device."""

import re
from collections.abc import Sequence
from functools import cache

from tokengym.envs.core.grammar import last_match
from tokengym.envs.energy.outcome import Commands

_NUMBER = r"([+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}))"


def read_commands(text: str, devices: tuple[str, ...], *, complete: bool) -> Commands | None:
    """Return the power of each device in kW, 0 for one not named; `None` if none is named.

    Args:
        text: a whole reply, of any content; the last line for a device counts.
        devices: names of the devices.
        complete: `False` if the reply was cut off; it then commands nothing.
    """
    if not complete:
        return None
    patterns = _patterns(devices)
    if len(patterns) == 1:
        match = last_match(patterns[0], text)
        return None if match is None else (float(match[1]),)
    matches = [last_match(pattern, text) for pattern in patterns]
    if not any(matches):
        return None
    return tuple(float(match[1]) if match else 0.0 for match in matches)


def write_commands(commands: Commands, devices: Sequence[str], *, decimals: int = 2) -> str:
    """Write a command for each device in the form `read_commands` reads."""
    lines = zip(devices, commands, strict=True)
    return "\n".join(f"{device} {_number(power, decimals)}" for device, power in lines)


def example(devices: Sequence[str]) -> str:
    """Return an example of a well-formed reply on one line."""
    return " / ".join(f"{device} 1.5" for device in devices)


def _number(power: float, decimals: int) -> str:
    text = f"{power:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


@cache
def _patterns(devices: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(rf"{device}\s*[:=]?\s*{_NUMBER}\s*(?:kW)?\.?", re.IGNORECASE | re.ASCII)
        for device in devices
    )
