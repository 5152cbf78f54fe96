"""Types that all plants share: parameters, states, commands, results of steps, forecasts."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

Commands = tuple[float, ...]
"""One power in kW per device, in the order of the plant's devices."""

TOLERANCE = 1e-6
"""Floating-point error of a safety cost or a power."""


class State(NamedTuple):
    """State that a plant carries from step to step.

    Attributes:
        stored: kWh in the battery.
        charged: kWh that the car has charged; 0 without a car.
        running: by generator 0 if it stands still, else 1 and the hours that it must go on running.
        indoor: °C in the house; 0 without one.
        peak: most kW bought in a step so far; 0 without a demand charge.
    """

    stored: float
    charged: float = 0.0
    running: tuple[int, ...] = ()
    indoor: float = 0.0
    peak: float = 0.0


class StepResult(NamedTuple):
    """The outcome of one step.

    Attributes:
        state: the state afterwards.
        money: cost of the step; negative if it earned.
        safety: the safety cost c_t >= 0: what the limit was missed by beyond the plant's `slack`.
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


@dataclass(frozen=True, kw_only=True)
class StoragePlant(ABC):
    """A plant with a battery over one horizon.

    Attributes:
        start: minute of the day at the first step.
        dt: hours a step.
        power: most kW that charge the battery.
        price: money per kWh bought, by step.
        price_of_missing: money per kWh stored less than at the start, after the last step.
        price_of_extra: money paid per kWh stored more than at the start.
        carbon: kg of CO2 per kWh bought, by step; empty if not known.
        most_score: score from which a safe episode earns 1.
        slack: units by which each step may miss the limit, at `price_of_miss`: what commands in
            tenths of a kW may miss it by.
        price_of_miss: money per unit missed within the slack: more than any plan could gain by it,
            but for negative prices and load that cannot be served.
        devices: names of the devices, in the order of the commands.
        requirement: the scale of violations: the largest of what `required` returns, and its sum.
    """

    OPTIONAL_SERIES: ClassVar[tuple[str, ...]] = ("carbon",)
    most_score: ClassVar[float] = 1.0
    start: int
    dt: float
    power: float
    price: tuple[float, ...]
    price_of_missing: float
    price_of_extra: float
    carbon: tuple[float, ...] = ()
    devices: tuple[str, ...] = field(init=False)
    requirement: tuple[float, float] = field(init=False)

    @cached_property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.price)

    @property
    @abstractmethod
    def slack(self) -> float:
        """See the class."""

    @property
    def price_of_miss(self) -> float:
        """See the class."""
        return self.price_of_missing

    @property
    @abstractmethod
    def initial(self) -> State:
        """The state at the start."""

    def closing(self, state: State) -> float:
        """Charge what is missing in store at the highest price, pay extra at the lowest."""
        extra = state.stored - self.initial.stored
        return settled(extra, self.price_of_missing, self.price_of_extra)

    def judged(self, missed: float) -> tuple[float, float]:
        """Return the money and the safety cost of missing a step's limit by `missed` units."""
        if missed <= 0.0:
            return 0.0, 0.0
        money = self.price_of_miss * min(missed, self.slack)
        beyond = missed - self.slack
        return money, beyond if beyond > TOLERANCE else 0.0

    def seen(self, step: int, state: State) -> State:
        """The state as shown: in hundredths, rounded down."""
        stored, charged, running, indoor, peak = state
        return State(
            rounded_down(stored),
            rounded_down(charged) if charged else 0.0,
            running,
            rounded_down(indoor) if indoor else 0.0,
            rounded_down(peak) if peak else 0.0,
        )


def settled(extra: float, price_of_missing: float, price_of_extra: float) -> float:
    """Return what the end charges for `extra` units in store, fewer than at the start if < 0."""
    return -price_of_extra * extra if extra > 0.0 else -price_of_missing * extra


def rounded_down(value: float) -> float:
    """Return `value` in hundredths, rounded down (sparing numbers that miss one by rounding)."""
    return math.floor(value * 100.0 + 1e-6) / 100.0


def rounded_up(value: float, decimals: int = 2) -> float:
    """Return `value` rounded up to `decimals` (sparing numbers that miss by rounding)."""
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
    now = step + 1
    return truth[:now] + newer + first[now + len(newer) :]
