"""Time series from a user's files: many days, checked and cut into windows."""

import bisect
import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.energy.generator import hours_of_day
from tokengym.envs.energy.levels import LEVELS, EnergyLevel
from tokengym.envs.energy.weather import Hours
from tokengym.envs.intake.report import IntakeReport, group_dropped
from tokengym.envs.intake.tables import CsvTable

LARGEST_LOAD = 100.0
"""kW of a home: more is taken for watts, unless the grid connection is said to be larger."""
_LARGEST_PRICE = 5.0
_LARGEST_INTENSITY = 3.0
_COLDEST, _HOTTEST = -60.0, 60.0
_NIGHT_DRAW = 0.05
_NIGHT_SHARE = 0.02
"""kW, and share of the highest sun, that a meter may show below 0 at night."""
_DAY = 1440
_COLUMNS = ("load", "pv", "price", "resale", "up", "outside", "carbon")
_DECIMALS = {"price": 3, "resale": 3, "carbon": 4}


@dataclass(frozen=True)
class TimeSeries(Immutable):
    """Columns of equal length, one entry per step; an empty column is missing.

    Attributes:
        start: minute of the day at which the first entry begins.
        minutes: length of a step.
        price: money per kWh bought.
        load: kW.
        pv: kW.
        resale: money per kWh sold.
        up: 1 while the grid is up, else 0.
        outside: °C.
        carbon: kg of CO2 per kWh bought.
        cuts: entries before which something is missing, with the minute of the day each begins at;
            no window crosses them.
        report: what was left out of the files, and why.
    """

    start: int
    minutes: int
    price: tuple[float, ...] = ()
    load: tuple[float, ...] = ()
    pv: tuple[float, ...] = ()
    resale: tuple[float, ...] = ()
    up: tuple[int, ...] = ()
    outside: tuple[float, ...] = ()
    carbon: tuple[float, ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    report: IntakeReport = field(default_factory=IntakeReport, compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Name the contents by their hash."""
        content: tuple[object, ...] = (self.start, self.minutes, self.price, self.load, self.pv)
        content += (self.resale, self.up, self.outside)
        content += tuple(part for part in (self.carbon, self.cuts) if part)
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:12]
        object.__setattr__(self, "digest", digest)

    @property
    def steps(self) -> int:
        """Number of entries."""
        return max(len(getattr(self, name)) for name in _COLUMNS)

    @property
    def stretches(self) -> list[tuple[int, int, int]]:
        """Runs of entries without a gap: first entry, entry after the last, minute of the day."""
        begins = [(0, self.start), *self.cuts]
        ends = [at for at, _ in self.cuts] + [self.steps]
        return [(at, end, minute) for (at, minute), end in zip(begins, ends, strict=True)]

    def minute_at(self, at: int) -> int:
        """Return the minute of the day at which entry `at` begins."""
        number = bisect.bisect_right(self.cuts, at, key=lambda cut: cut[0])
        first, minute = self.cuts[number - 1] if number else (0, self.start)
        return (minute + (at - first) * self.minutes) % _DAY

    def windows(self, level: EnergyLevel) -> Windows:
        """Return the windows that a level can play, assigned to splits by a hash of the contents.

        Raises:
            DataError: if the step is another, a column is missing, or fewer than three windows fit.
        """
        if level.minutes != self.minutes:
            fits = [name for name, other in LEVELS.items() if other.minutes == self.minutes]
            advice = f"play them at {', '.join(map(repr, fits))}, or " if fits else ""
            raise DataError(
                f"the level has steps of {level.minutes} minutes, the data {self.minutes}: "
                f"{advice}give resample=True"
            )
        for name in ("outside",) if level.house else ("load", "pv"):
            if not getattr(self, name):
                raise DataError(f"the level needs the column {name!r}, which the data do not have")
        starts = []
        first, last = level.begins
        for begin, end, _ in self.stretches:
            at = begin + level.history
            while at + level.steps <= end:
                hour = self.minute_at(at) / 60.0
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
        if self.cuts:
            longest = max(end - begin for begin, end, _ in self.stretches)
            kind += f" (the longest stretch without a gap has {longest} rows)"
        return Windows(shuffled, kind)

    def _shuffle_key(self, start: int) -> bytes:
        return hashlib.sha256(f"{self.digest}:{start}".encode()).digest()

    def days(self, level: EnergyLevel, at: int) -> dict[str, Any]:
        """Return the series of the window that begins at entry `at`, as fields of a plant.

        Prices are left out where the data have none, and sales then have none either; sales of
        data with prices alone pay nothing.
        """
        window = slice(at, at + level.steps)
        days: dict[str, Any] = {"start": self.minute_at(at)}
        if self.price:
            days["price"] = np.array(self.price[window])
        if self.carbon:
            days["carbon"] = np.array(self.carbon[window])
        if level.house:
            return days | {"outside": np.array(self.outside[window])}
        before = slice(at - level.history, at)
        days |= {
            "load": np.array(self.load[window]),
            "pv": np.array(self.pv[window]),
            "before": [[a, b] for a, b in zip(self.load[before], self.pv[before], strict=True)],
        }
        if self.price:
            days["resale"] = np.array(self.resale[window] or (0.0,) * level.steps)
        if self.up:
            days["up"] = np.array(self.up[window])
            begun = sum(a > b for a, b in zip(self.up, self.up[1:], strict=False))
            days["chance"] = [round(begun / len(self.up), 4)] * level.steps if begun else []
            days["critical"] = 0.5 if begun else 1.0
            down = (len(self.up) - sum(self.up)) * self.minutes / 60.0
            days["outage_hours"] = round(down / begun, 1) if begun else 0.0
        return days

    def hours(self, level: EnergyLevel, at: int) -> Hours:
        """Return the hour of the day by step of the window that begins at entry `at`."""
        return hours_of_day(self.minute_at(at), level.steps, self.minutes)


def resample_to(series: TimeSeries, minutes: int) -> TimeSeries:
    """Return a series in steps of another length, all of them full multiples from midnight.

    Longer steps hold means, and the grid is up where it was for the whole step; shorter ones repeat
    what they are part of. What fills no whole step at the end of a stretch is left out.

    Raises:
        DataError: if one length is no multiple of the other.
    """
    if minutes == series.minutes:
        return series
    ratio, rest = divmod(max(minutes, series.minutes), min(minutes, series.minutes))
    if rest:
        raise DataError(
            f"steps of {series.minutes} minutes cannot be resampled to {minutes}: one length must "
            "be a multiple of the other"
        )
    entries: list[list[int]] = []
    cuts: list[tuple[int, int]] = []
    for begin, end, _ in series.stretches:
        at = begin
        if minutes > series.minutes:
            while at < end and series.minute_at(at) % minutes:
                at += 1
            parts = [list(range(i, i + ratio)) for i in range(at, end - ratio + 1, ratio)]
        else:
            parts = [[i] for i in range(begin, end) for _ in range(ratio)]
        if parts:
            cuts.append((len(entries), series.minute_at(at)))
            entries.extend(parts)
    used = {i for part in entries for i in part}
    if not entries:
        raise DataError(f"no whole step of {minutes} minutes is left of {series.steps} rows")
    columns: dict[str, Any] = {
        name: tuple(_joined(name, [values[i] for i in part]) for part in entries)
        for name in _COLUMNS
        if (values := getattr(series, name))
    }
    way = "averaged" if minutes > series.minutes else "repeated"
    note = f"steps of {series.minutes} minutes are {way} to {minutes}"
    lost = series.steps - len(used)
    note += f"; {lost} rows fill no whole step and are left out" if lost else ""
    report = replace(series.report, notes=(*series.report.notes, note))
    return TimeSeries(cuts[0][1], minutes, **columns, cuts=tuple(cuts[1:]), report=report)


def time_series_of(
    columns: Mapping[str, Sequence[float]],
    tables: Mapping[str, CsvTable],
    minutes_of_day: Sequence[int],
    minutes: int,
    breaks: Mapping[int, str],
    *,
    most_load: float = LARGEST_LOAD,
) -> TimeSeries:
    """Check that the numbers make sense, round them to the grid of the texts, and build the series.

    A row in which a number is missing (NaN) is left out, and the series is cut there.

    Args:
        columns: by field of `TimeSeries`, its numbers.
        tables: by field, the table they come from.
        minutes_of_day: of each row.
        minutes: length of a step.
        breaks: why the series is cut before a row, by its number.
        most_load: kW above which a load or sun is taken for a slip of units.

    Raises:
        DataError: naming file, line and reason, if columns differ in length, a power, price or
            temperature cannot be in its unit, or a load or sun is negative.
    """
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"columns must have as many rows each, got {lengths}")
    notes = []
    if "pv" in columns:
        sun, count = _without_night_draw(columns["pv"])
        columns = {**columns, "pv": sun}
        if count:
            notes.append(f"{count} readings of sun just below 0, as inverters draw at night, are 0")
    for name, values in columns.items():
        for row, value in zip(tables[name].rows, values, strict=True):
            reason = "" if math.isnan(value) else _objection(name, value, most_load)
            if reason:
                raise DataError(f"{row.place}: {name} is {value!r}: {reason}")
    rows: list[int] = []
    cuts: list[tuple[int, int]] = []
    omissions: list[tuple[int, str, str]] = []
    first = next(iter(tables.values()))
    cut = False
    for at, minute in enumerate(minutes_of_day):
        if at in breaks:
            cut = True
            omissions.append((0, breaks[at], first.rows[at].place))
        missing = [name for name, values in columns.items() if math.isnan(values[at])]
        if missing:
            cut = True
            place = tables[missing[0]].rows[at].place
            omissions.append((1, f"{' and '.join(missing)} missing", place))
            continue
        if cut and rows:
            cuts.append((len(rows), minute))
        cut = False
        rows.append(at)
    if not rows:
        raise DataError(f"{first.path}: no row is left: {omissions[0][1]} in {omissions[0][2]}")
    rounded: dict[str, Any] = {
        name: tuple(
            int(values[at]) if name == "up" else round(values[at], _decimals(name)) for at in rows
        )
        for name, values in columns.items()
    }
    begins = [0, *(at for at, _ in cuts), len(rows)]
    longest = max(end - begin for begin, end in itertools.pairwise(begins))
    stretches = (
        f"in {len(cuts) + 1} stretches, the longest of {longest}" if cuts else "without a gap"
    )
    notes.append(f"{len(rows)} steps of {minutes} minutes, {stretches}")
    names = dict.fromkeys(Path(table.path).name for table in tables.values())
    report = IntakeReport(
        dict.fromkeys(names, len(minutes_of_day)),
        dropped=group_dropped(omissions),
        notes=tuple(notes),
        every=tuple(f"{place}: {why}" for _, why, place in omissions),
    )
    start = minutes_of_day[rows[0]]
    return TimeSeries(start, minutes, **rounded, cuts=tuple(cuts), report=report)


def _without_night_draw(sun: Sequence[float]) -> tuple[list[float], int]:
    """Return sun with what an inverter draws at night as 0, and how many readings that are."""
    most = max((value for value in sun if not math.isnan(value)), default=0.0)
    low = -max(_NIGHT_DRAW, _NIGHT_SHARE * most)
    return [0.0 if low <= v < 0.0 else v for v in sun], sum(low <= v < 0.0 for v in sun)


def _joined(name: str, values: Sequence[float]) -> float:
    """Return the one value of a longer step: whether the grid was always up, else the mean."""
    if name == "up":
        return min(values)
    return round(math.fsum(values) / len(values), _decimals(name))


def _decimals(name: str) -> int:
    return _DECIMALS.get(name, 2)


def _objection(name: str, value: float, most_load: float) -> str:
    """Return why a number is refused in a column; empty if it is accepted."""
    if name == "up":
        return "" if value in (0.0, 1.0) else "the grid is up (1) or down (0)"
    if name == "outside":
        return "" if _COLDEST <= value <= _HOTTEST else "not a temperature in degrees Celsius"
    if name in ("price", "resale"):
        if abs(value) <= _LARGEST_PRICE:
            return ""
        return f"beyond {_LARGEST_PRICE:g} per kWh: is it in cents, or per MWh?"
    if value < 0.0:
        return f"a {name} is never negative"
    if name == "carbon":
        most = _LARGEST_INTENSITY
        return "" if value <= most else f"more than {most:g} kg per kWh: is it in grams?"
    if value > most_load:
        return (
            f"more than {most_load:g} kW: is it in W? If not, give import_cap_kw, the kW of the "
            "connection, and battery_kwh and battery_kw to match"
        )
    return ""
