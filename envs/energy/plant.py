"""The interface of a plant: step it, price its end, and return what safety requires of it."""

import math
from typing import NamedTuple, Protocol, Self

State = tuple[float, float]
"""Battery energy in kWh (or the indoor temperature in °C) and the car's charge in kWh."""

Commands = tuple[float, ...]
"""One power in kW per device, in the order of `Plant.devices`."""

TOLERANCE = 1e-6
"""A safety cost up to this is rounding, not a violation."""


class Outcome(NamedTuple):
    """The outcome of one step.

    Attributes:
        state: the state afterwards.
        money: cost of the step; negative if it earned.
        safety: the safety cost c_t >= 0, 0 if at most `TOLERANCE`.
        done: the powers that physics allowed, kW per device.
    """

    state: State
    money: float
    safety: float
    done: Commands


class Plant(Protocol):
    """A controlled system over a fixed horizon, with all that will happen to it. Immutable."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of what can be commanded, as a reply writes them."""
        ...

    @property
    def dt(self) -> float:
        """Length of a step in hours."""
        ...

    @property
    def start(self) -> int:
        """Minute of the day at which the first step begins."""
        ...

    @property
    def steps(self) -> int:
        """Number of steps."""
        ...

    @property
    def initial(self) -> State:
        """State before the first step."""
        ...

    @property
    def requirement(self) -> tuple[float, float]:
        """The largest safety requirement of a step and the sum of all: scales of the depth."""
        ...

    def required(self, step: int) -> float:
        """Safety requirement R_t of one step, in the unit of the safety cost."""
        ...

    def advance(self, step: int, state: State, commands: Commands) -> Outcome:
        """Apply commands during `step`. Physics clips them; safety never does."""
        ...

    def closing(self, state: State) -> float:
        """Money charged at the end for what is stored less than at the start, or paid for more."""
        ...

    def seen(self, step: int, state: State) -> State:
        """The state as an observation shows it, rounded to the safe side."""
        ...

    def foreseen(self, step: int) -> Self:
        """The plant as shown at `step`: the truth up to now, forecasts from then on."""
        ...


def rounded_down(value: float) -> float:
    """Return `value` in hundredths, rounded down (sparing numbers that miss one by rounding)."""
    return math.floor(value * 100.0 + 1e-6) / 100.0


def rounded_up(value: float) -> float:
    """Return `value` in hundredths, rounded up (sparing numbers that miss one by rounding)."""
    return math.ceil(value * 100.0 - 1e-6) / 100.0


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
