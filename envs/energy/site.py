"""An off-grid site: two generators to be committed before an hour is known, a battery and sun.

One of a few stated days comes; it cannot be told from the others until they differ. Units: kW, kWh,
money. With g the powers of the units that run, c and d those of the battery, in each hour:

    d - c = load - sun - g + lost - unserved,  0 <= c, d <= P,  E' = E + η c - d <= capacity
    money = sum over running units of (no-load + fuel g) + starts + wear (c + d) + VOLL unserved

A running unit raises its power where the battery would fall below its floor, the cheaper one first;
one that stands still cannot start within the hour. So both running serve any load. Power
that the battery cannot take is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

from tokengym.envs.energy.microgrid import LOST_LOAD
from tokengym.envs.energy.step_result import TOLERANCE, Commands, State, StepResult, StoragePlant

LEAST = 0.3
"""A running unit gives at least this share of its rating."""


class Unit(NamedTuple):
    """A generator.

    Attributes:
        rating: most kW.
        no_load: money an hour while it runs.
        fuel: money per kWh besides.
        start: money a start.
        hours: least length of a run.
    """

    rating: float
    no_load: float
    fuel: float
    start: float
    hours: int

    @property
    def least(self) -> float:
        """Least kW while it runs."""
        return round(LEAST * self.rating, 2)


@dataclass(frozen=True, kw_only=True)
class OffGridSite(StoragePlant):
    """One site over one horizon, with D days that may come. Steps are hours.

    Attributes:
        capacity: kWh of the battery.
        efficiency: share kept in charging, (0, 1].
        energy: kWh at the start.
        wear: money per kWh moved through the battery.
        floor: kWh that the battery must hold at the end of each hour.
        generators: the fields of two `Unit`s, the one with the cheaper fuel first.
        chances: of each day, D numbers.
        loads: kW by day and hour.
        suns: kW by day and hour.
        day: the one that comes.
    """

    SERIES: ClassVar[tuple[str, ...]] = ("loads", "suns", "chances")
    most_score: ClassVar[float] = 1.5

    capacity: float
    efficiency: float
    energy: float
    wear: float
    floor: float
    generators: tuple[tuple[float, float, float, float, int], ...]
    chances: tuple[float, ...]
    loads: tuple[tuple[float, ...], ...]
    suns: tuple[tuple[float, ...], ...]
    day: int
    devices: tuple[str, ...] = field(init=False, default=("BIG", "SMALL"))

    def __post_init__(self) -> None:
        """Derive the scale of violations: a step's is the floor and the largest load."""
        largest = self.required(0)
        object.__setattr__(self, "requirement", (largest, self.steps * largest))

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        """The generators, BIG first."""
        return tuple(Unit(*unit) for unit in self.generators)

    @cached_property
    def steps(self) -> int:
        """Number of hours."""
        return len(self.loads[0])

    @property
    def pv(self) -> tuple[float, ...]:
        """Sun of the day that comes, kW."""
        return self.suns[self.day]

    @property
    def slack(self) -> float:
        """Nothing: a running unit keeps the floor."""
        return 0.0

    @property
    def initial(self) -> State:
        """Battery energy at the start; both units stand still."""
        return State(self.energy, running=(0,) * len(self.generators))

    def required(self, step: int) -> float:
        """KWh that may be missed in an hour: the floor and the largest load."""
        return self.floor + max(map(max, self.loads))

    def possible(self, step: int) -> tuple[int, ...]:
        """Return the days that may still come before an hour, by their numbers."""
        seen = self.loads[self.day][:step], self.suns[self.day][:step]
        days = range(len(self.chances))
        return tuple(d for d in days if (self.loads[d][:step], self.suns[d][:step]) == seen)

    def advance(self, step: int, state: State, commands: Commands) -> StepResult:
        """Run the units during an hour; physics clips their powers, and raises them at the floor.

        A unit that must go on running gives at least its least; one told less than that is off.
        """
        money, powers, running = 0.0, [], []
        for unit, hours, command in zip(self.units, state.running, commands, strict=True):
            on = hours > 1 or command >= unit.least - TOLERANCE
            powers.append(min(max(command, unit.least), unit.rating) if on else 0.0)
            running.append((max(hours - 1, 1) if hours else unit.hours) if on else 0)
            money += unit.no_load * on + unit.start * (on and not hours)
        load, sun = self.loads[self.day][step], self.suns[self.day][step]
        need = load - sun - sum(powers)
        for number, unit in enumerate(self.units):
            lacking = need - min(self.power, max(state.stored - self.floor, 0.0))
            if running[number] and lacking > 0.0:
                raised = min(unit.rating - powers[number], lacking)
                powers[number] += raised
                need -= raised
        given = min(max(need, 0.0), self.power, state.stored)
        room = (self.capacity - state.stored) / self.efficiency
        taken = min(max(-need, 0.0), self.power, room)
        unserved = max(need - given, 0.0)
        unserved = unserved if unserved > TOLERANCE else 0.0
        stored = state.stored + self.efficiency * taken - given
        money += sum(unit.fuel * power for unit, power in zip(self.units, powers, strict=True))
        money += self.wear * (given + taken) + LOST_LOAD * unserved
        _, missed = self.judged(self.floor - stored)
        lost = max(-need - taken, 0.0)
        return StepResult(
            State(stored, running=tuple(running)),
            money,
            missed + unserved,
            tuple(powers),
            0.0,
            unserved,
            max(sun - lost, 0.0),
        )

    def foreseen(self, step: int) -> Self:
        """The site as shown at `step`: instead of the day that comes, one that still may."""
        return replace(self, day=self.possible(step)[0])


def shares(units: Sequence[Unit], on: Sequence[int], total: float) -> Commands:
    """Split a total power over the units that run: least powers, then the cheaper fuel first."""
    powers = [unit.least * runs for unit, runs in zip(units, on, strict=True)]
    for number, unit in enumerate(units):
        if on[number]:
            powers[number] += min(unit.rating - unit.least, max(total - sum(powers), 0.0))
    return tuple(round(power, 2) for power in powers)
