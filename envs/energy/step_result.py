"""What both plants share: states, commands, the outcome of a step, rounding and forecasts."""

import math
from typing import NamedTuple

State = tuple[float, float]
"""Battery energy in kWh (or the indoor temperature in °C) and the car's charge in kWh."""

Commands = tuple[float, ...]
"""One power in kW per device, in the order of the plant's devices."""

TOLERANCE = 1e-6
"""A safety cost up to this is rounding, not a violation."""


class StepResult(NamedTuple):
    """The outcome of one step.

    Attributes:
        state: the state afterwards.
        money: cost of the step; negative if it earned.
        safety: the safety cost c_t >= 0, 0 if at most `TOLERANCE`.
        done: the powers that physics allowed, kW per device.
        grid: mean kW bought from the grid; negative if sold.
        unserved: kW of load not served.
        sun: kW of the sun that were used or sold.
    """

    state: State
    money: float
    safety: float
    done: Commands
    grid: float
    unserved: float = 0.0
    sun: float = 0.0


def rounded_down(value: float) -> float:
    """Return `value` in hundredths, rounded down (sparing numbers that miss one by rounding)."""
    return math.floor(value * 100.0 + 1e-6) / 100.0


def rounded_up(value: float, decimals: int = 2) -> float:
    """Return `value` rounded up to so many decimals (sparing numbers that miss by rounding)."""
    scale = 10.0**decimals
    return math.ceil(value * scale - 1e-6) / scale


def latest(
    truth: tuple[float, ...],
    first: tuple[float, ...],
    updates: tuple[tuple[float, ...], ...],
    step: int,
) -> tuple[float, ...]:
    """Return a series as known at `step`.

    Args:
        truth: what happens; known up to and including `step`.
        first: the forecast of every step, shown once at the start.
        updates: by step, newer forecasts of the steps right after it; may be empty.
        step: now.
    """
    newer = updates[step] if updates else ()
    known = step + 1
    return truth[:known] + newer + first[known + len(newer) :]
