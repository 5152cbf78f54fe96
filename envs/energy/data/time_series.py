"""Time series from a user's files: what happened over many days, checked, in windows."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.tables import Table
from tokengym.envs.core.windows import Windows
from tokengym.envs.energy.generator import hours_of_day
from tokengym.envs.energy.levels import Level
from tokengym.envs.energy.weather import Hours

_LARGEST_POWER = 100.0
_LARGEST_PRICE = 5.0
_COLDEST, _HOTTEST = -60.0, 60.0
_DAY = 1440


@dataclass(frozen=True)
class TimeSeries(Immutable):
    """Columns of equal length, one entry a step, without gaps; an empty column is missing.

    Attributes:
        start: minute of the day at which the first entry begins.
        minutes: length of a step.
        price: money per kWh bought.
        load: kW.
        pv: kW.
        resale: money per kWh sold.
        up: 1 while the grid is up, else 0.
        outside: °C.
    """

    start: int
    minutes: int
    price: tuple[float, ...]
    load: tuple[float, ...] = ()
    pv: tuple[float, ...] = ()
    resale: tuple[float, ...] = ()
    up: tuple[int, ...] = ()
    outside: tuple[float, ...] = ()
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Name the contents by their hash."""
        content = (self.start, self.minutes, self.price, self.load, self.pv, self.resale, self.up)
        digest = hashlib.sha256(repr((*content, self.outside)).encode()).hexdigest()[:12]
        object.__setattr__(self, "digest", digest)

    def windows(self, level: Level) -> Windows:
        """Return the windows that a level can play, dealt to the splits by a hash of the contents.

        Raises:
            DataError: if the step is another, a column is missing, or fewer than three windows fit.
        """
        if level.minutes != self.minutes:
            raise DataError(
                f"the level has steps of {level.minutes} minutes, the data {self.minutes}"
            )
        for name in ("outside",) if level.house else ("load", "pv"):
            if not getattr(self, name):
                raise DataError(f"the level needs the column {name!r}, which the data do not have")
        starts, at = [], level.history
        first, last = level.begins
        while at + level.steps <= len(self.price):
            hour = (self.start + at * self.minutes) % _DAY / 60.0
            if first <= hour < last + 1:
                starts.append(at)
                at += level.steps
            else:
                at += 1
        shuffled = sorted(starts, key=self._shuffle_key, reverse=True)
        kind = (
            f"windows of {level.steps} steps that begin between {first} and {last} h with "
            f"{level.history} rows before them"
        )
        return Windows(shuffled, kind)

    def _shuffle_key(self, start: int) -> bytes:
        return hashlib.sha256(f"{self.digest}:{start}".encode()).digest()

    def days(self, level: Level, at: int) -> dict[str, Any]:
        """Return the series of the window that begins at entry `at`, as fields of a plant."""
        window = slice(at, at + level.steps)
        start = (self.start + at * self.minutes) % _DAY
        days: dict[str, Any] = {"start": start, "price": np.array(self.price[window])}
        if level.house:
            return days | {"outside": np.array(self.outside[window])}
        before = slice(at - level.history, at)
        days |= {
            "load": np.array(self.load[window]),
            "pv": np.array(self.pv[window]),
            "resale": np.array(self.resale[window] or (0.0,) * level.steps),
            "before": [[a, b] for a, b in zip(self.load[before], self.pv[before], strict=True)],
        }
        if self.up:
            days["up"] = np.array(self.up[window])
            begun = sum(a > b for a, b in zip(self.up, self.up[1:], strict=False))
            days["chance"] = [round(begun / len(self.up), 4)] * level.steps if begun else []
            days["critical"] = 0.5 if begun else 1.0
            down = (len(self.up) - sum(self.up)) * self.minutes / 60.0
            days["outage_hours"] = round(down / begun, 1) if begun else 0.0
        return days

    def hours(self, level: Level, at: int) -> Hours:
        """Return the hour of the day by step of the window that begins at entry `at`."""
        return hours_of_day((self.start + at * self.minutes) % _DAY, level.steps, self.minutes)


def time_series_of(
    columns: Mapping[str, Sequence[float]],
    tables: Mapping[str, Table],
    start: int,
    minutes: int,
) -> TimeSeries:
    """Check that the numbers make sense, round them to the grid of the texts, and build the series.

    Args:
        columns: by field of `TimeSeries`, its numbers.
        tables: by field, the table they come from.
        start: minute of the day of the first.
        minutes: length of a step.

    Raises:
        DataError: naming file, line and reason, if columns differ in length, a power, price or
            temperature cannot be in its unit, or a load, sun or price is negative.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"columns must have as many rows each, got {lengths}")
    for name, values in columns.items():
        for row, value in zip(tables[name].rows, values, strict=True):
            reason = _objection(name, value)
            if reason:
                raise DataError(f"{row.place}: {name} is {value!r}: {reason}")
    rounded = {
        name: tuple(round(value, 3 if name in ("price", "resale") else 2) for value in values)
        for name, values in columns.items()
    }
    return TimeSeries(
        start,
        minutes,
        rounded["price"],
        rounded.get("load", ()),
        rounded.get("pv", ()),
        rounded.get("resale", ()),
        tuple(int(up) for up in rounded.get("up", ())),
        rounded.get("outside", ()),
    )


def _objection(name: str, value: float) -> str:
    """Return why a number is refused in a column; empty if it is not."""
    if name == "up":
        return "" if value in (0.0, 1.0) else "the grid is up (1) or down (0)"
    if name == "outside":
        return "" if _COLDEST <= value <= _HOTTEST else "that is no temperature in degrees Celsius"
    if value < 0.0:
        if name in ("price", "resale"):
            return "negative prices are refused: burning energy is no command here"
        return f"a {name} is never negative"
    if name in ("load", "pv") and value > _LARGEST_POWER:
        return f"more than {_LARGEST_POWER:g} kW at a home: is it in W? If not, scale it down"
    if name in ("price", "resale") and value > _LARGEST_PRICE:
        return f"more than {_LARGEST_PRICE:g} per kWh: is it in cents, or per MWh?"
    return ""
