"""Time series from a user's files: many days, checked and cut into windows."""

import bisect
import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.energy.data.columns import FileColumns, decimals
from tokengym.envs.energy.data.doubts import doubts
from tokengym.envs.energy.generator import hours_of_day
from tokengym.envs.energy.levels import LEVELS, EnergyLevel
from tokengym.envs.energy.weather import Hours
from tokengym.envs.intake.report import IntakeReport, group_dropped

_DAY = 1440
_COLUMNS = ("load", "pv", "price", "resale", "up", "outside", "carbon")


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
        for name in ("load", "pv", "outside") if level.house else ("load", "pv"):
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
        data with prices alone pay nothing. Outages are for levels whose limit is a reserve.
        """
        window = slice(at, at + level.steps)
        days: dict[str, Any] = {"start": self.minute_at(at)}
        if self.price:
            days["price"] = np.array(self.price[window])
        if self.carbon:
            days["carbon"] = np.array(self.carbon[window])
        if level.house:
            days["outside"] = np.array(self.outside[window])
        before = slice(at - level.history, at)
        days |= {
            "load": np.array(self.load[window]),
            "pv": np.array(self.pv[window]),
            "before": [[a, b] for a, b in zip(self.load[before], self.pv[before], strict=True)],
        }
        if self.price:
            days["resale"] = np.array(self.resale[window] or (0.0,) * level.steps)
        if self.up and not level.house:
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
    what they are part of. Readings that fill no whole step at the end of a stretch are left out.

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


def time_series_of(files: FileColumns) -> TimeSeries:
    """Round the numbers of files to the grid of the texts, and build the series.

    A row in which a number is missing (NaN) is left out, and the series is cut there.

    Raises:
        DataError: if columns differ in length, or no row is left.
    """
    columns = files.columns
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) != 1:
        raise DataError(f"columns must have as many rows each, got {lengths}")
    rows: list[int] = []
    cuts: list[tuple[int, int]] = []
    omissions = list(files.omissions)
    first = next(iter(files.tables.values())).rows
    cut = False
    for at, minute in enumerate(files.minutes_of_day):
        if at in files.breaks:
            cut = True
            omissions.append((0, files.breaks[at], first[at].place))
        missing = [name for name, values in columns.items() if math.isnan(values[at])]
        if missing:
            cut = True
            place = files.tables[missing[0]].rows[at].place
            omissions.append((1, f"{' and '.join(missing)} missing", place))
            continue
        if cut and rows:
            cuts.append((len(rows), minute))
        cut = False
        rows.append(at)
    if not rows:
        raise DataError(f"no row is left: {omissions[0][1]} in {omissions[0][2]}")
    rounded: dict[str, Any] = {
        name: tuple(
            int(values[at]) if name == "up" else round(values[at], decimals(name)) for at in rows
        )
        for name, values in columns.items()
    }
    begins = [0, *(at for at, _ in cuts), len(rows)]
    longest = max(end - begin for begin, end in itertools.pairwise(begins))
    stretches = (
        f"in {len(cuts) + 1} stretches, the longest of {longest}" if cuts else "without a gap"
    )
    kept = f"{len(rows)} steps of {files.minutes} minutes, {stretches}"
    lost = ("; ".join(files.lost),) if files.lost else ()
    start = files.minutes_of_day[rows[0]]
    doubtful = doubts(rounded, [files.minutes_of_day[at] for at in rows], files.minutes)
    report = IntakeReport(
        files.counts,
        dropped=group_dropped(omissions),
        notes=(*lost, *files.formats, *files.notes, kept, *doubtful),
        every=tuple(f"{place}: {why}" for _, why, place in omissions),
    )
    return TimeSeries(start, files.minutes, **rounded, cuts=tuple(cuts), report=report)


def _joined(name: str, values: Sequence[float]) -> float:
    """Return the one value of a longer step: whether the grid was always up, else the mean."""
    if name == "up":
        return min(values)
    return round(math.fsum(values) / len(values), decimals(name))
