"""Joining files by the times of their rows, and reading those that come without a load.

PVWatts has the hours of a typical year in the standard time of the place, the Transparency Platform
of ENTSO-E day-ahead prices by market time unit.
"""

import math
import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import compress, repeat
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data.clock import Clock, clock_of, interruptions, periods_of, spans_of
from tokengym.envs.energy.data.columns import FileColumns
from tokengym.envs.intake.numbers import is_missing
from tokengym.envs.intake.tables import CsvTable, Row
from tokengym.envs.intake.times import is_skipped, localized

PVWATTS = "ac_system_output_(w)"
_LEAP_YEAR = 2000
"""Stands for any year."""
_UNIT = "mtu_("
_ISLES = {"GMT/BST": "Europe/London", "GMT/IST": "Europe/Dublin"}
"""Zones by their times; other standard times of Europe are zones of the database by themselves."""
_PRICE = "day-ahead_price"
_SEQUENCE = re.compile(r"sequence|without|\s", re.ASCII)
"""Prefix of an auction's number, written once, twice or not at all."""
_CARRIED = ("price", "resale")
_LONGEST_CARRIED = 3600.0
"""Columns in which rows equal to the one before may be left out, as quarter-hours are in curves of
type A03, and for how many seconds after its beginning a row may stand for them."""


def read_pvwatts(table: CsvTable, files: FileColumns) -> None:
    """`Month`, `Day`, `Hour` and `AC System Output (W)`, and maybe a last row of totals."""
    table.rows = [row for row in table.rows if row.cells["month"].lower() != "totals"]
    files.counts[Path(table.path).name] = len(table.rows)
    if files.zone is None:
        raise DataError(f"{table.path}: its hours are standard time of a place: give its zone")
    names = [table.require(name) for name in ("month", "day", "hour")]
    times = []
    for row in table.rows:
        month, day, hour = (row.whole(name, 0, 31) for name in names)
        try:
            times.append(datetime(_LEAP_YEAR, month, day, hour, tzinfo=UTC))
        except ValueError as error:
            raise DataError(f"{row.place}: month, day and hour are no time: {error}") from error
    files.clocks[table.path] = clock_of(table, times, None)._replace(yearly=True)
    files.add("pv", table, [watts / 1000.0 for watts in table.readings(PVWATTS)])


def find_prices(table: CsvTable) -> tuple[str, str] | None:
    """Return the columns of times and of prices in a file of ENTSO-E; `None` if it is none."""
    found = [[name for name in table.header if name.startswith(s)] for s in (_UNIT, _PRICE)]
    return (table.require(*found[0]), table.require(*found[1])) if all(found) else None


def read_prices(table: CsvTable, files: FileColumns) -> None:
    """`MTU (CET/CEST)` and `Day-ahead Price (EUR/MWh)`, of one area and its first auction.

    Files of several periods are one series, in which they may overlap.
    """
    unit, price = find_prices(table) or ("", "")
    stated = unit.removeprefix(_UNIT).rstrip(")").upper()
    name = _ISLES.get(stated) or stated.split("/")[0]
    if name not in available_timezones():
        raise DataError(f"{table.path}, line 1: {name!r} is no zone of the time zone database")
    zone = ZoneInfo(name)
    if table.has("sequence"):
        numbers = [_SEQUENCE.sub("", number.lower()) for number in table.texts("sequence")]
        first = [number in ("", "1") for number in numbers]
        if not all(first):
            place = table.rows[first.index(False)].place
            files.omissions.append((first.count(False), "prices of a later auction", place))
        table.rows = list(compress(table.rows, first))
    units = table.readable(_unit_of, unit)
    # An hour that clocks skip has a row, and no price.
    real = [
        not (is_missing(row.cells[price]) and is_skipped(begin, zone))
        for row, (begin, _) in zip(table.rows, units, strict=True)
    ]
    table.rows, units = list(compress(table.rows, real)), list(compress(units, real))
    begins = localized([begin for begin, _ in units], zone, [row.place for row in table.rows])
    ends = [_end_of(begin, end, zone) for begin, (_, end) in zip(begins, units, strict=True)]
    values = [value / 1000.0 for value in table.readings(price)]
    known = _take_earlier(table, files, price)
    rows = [*table.rows, *(one.row for one in known.values())]
    areas = sorted({row.cells["area"] for row in rows}) if table.has("area") else []
    if len(areas) > 1:
        raise DataError(f"{table.path}: prices of one area are needed, got those of {areas}")
    again = len(known) + len(begins)
    for begin, one in zip(begins, map(_Price, ends, values, table.rows), strict=True):
        old = known.setdefault(begin, one)
        if math.isnan(old.value):
            known[begin] = one
        elif one.value != old.value and not math.isnan(one.value):
            here, there = (f"{row.cells[price]} in {row.place}" for row in (one.row, old.row))
            raise DataError(f"{table.path}: the price at {begin} is {here}, and {there}")
    if again > len(known):
        why = "prices at times that another row has"
        files.omissions.append((again - len(known), why, str(table.path)))
    known = dict(sorted(known.items()))
    table.rows = [one.row for one in known.values()]
    known_ends = [one.end for one in known.values() if one.end is not None]
    all_known = len(known_ends) == len(known)
    clock = clock_of(table, list(known), None)
    files.clocks[table.path] = clock._replace(ends=known_ends if all_known else None)
    files.add("price", table, [one.value for one in known.values()])


class _Price(NamedTuple):
    """A row of prices: until when if it says so, in money per kWh, and where."""

    end: datetime | None
    value: float
    row: Row


def _take_earlier(table: CsvTable, files: FileColumns, price: str) -> dict[datetime, _Price]:
    """Take the prices that an earlier file of the same form has out of the columns."""
    earlier = files.tables.get("price")
    if earlier is None or (find_prices(earlier) or ("", ""))[1] != price:
        return {}
    del files.tables["price"]
    clock, values = files.clocks.pop(earlier.path), files.columns.pop("price")
    rows = map(_Price, clock.ends or repeat(None), values, earlier.rows)
    return dict(zip(clock.times, rows, strict=True))


def _unit_of(row: Row, column: str) -> tuple[datetime, datetime]:
    """Return when a market time unit begins and ends, as clocks show it; no end is its beginning.

    `fold` of the beginning is 1 where it is marked as standard time.
    """
    cell = row.cells[column]
    begins, _, ends = cell.partition(" - ")
    try:
        begin, end = (
            datetime.strptime(part[:16].replace("/", "."), "%d.%m.%Y %H:%M")
            for part in (begins, ends or begins)
        )
    except ValueError as error:
        form = "a market time unit like 31/12/2025 23:00 - 01/01/2026 00:00"
        raise DataError(f"{row.place}: {cell!r} is not {form}") from error
    return begin.replace(fold=int("(" in begins and "EST)" not in begins)), end


def _end_of(begin: datetime, end: datetime, zone: ZoneInfo) -> datetime | None:
    """Return the first time after another at which clocks show an end, if there is one."""
    shown = (end.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return next((time for time in shown if time > begin), None)


def join(files: FileColumns) -> None:
    """Bring the columns of files with times to the rows of the load's, where all have some.

    A step of the load has the mean by time of what another file has in it.

    Raises:
        DataError: naming the file, if it has no times, or ones without an offset from UTC, or no
            time is in all files.
    """
    base = files.tables.get("load") or next(iter(files.tables.values()))
    others = {name: table for name, table in files.tables.items() if table is not base}
    for table in (base, *others.values()):
        own = files.clocks.get(table.path)
        if own is None or (own.yearly and table is base):
            raise DataError(f"{table.path}: its rows have no times to join other files by")
        if others and own.times[0].tzinfo is None:
            raise DataError(f"{table.path}: its times have no offset from UTC: give their zone")
    clock = files.clocks[base.path]
    if others:
        for name, table in others.items():
            files.columns[name] = _aligned(name, table, files, clock)
            files.notes.append(f"{name}: {periods_of(files.clocks[table.path])}")
        kept = _overlap(files, base, list(others))
        clock, rows = clock._replace(times=clock.times[kept]), base.rows[kept]
        for name, table in files.tables.items():
            # A number that is missing is named by the load's row.
            files.columns[name], table.rows = files.columns[name][kept], rows
    files.minutes_of_day = [60 * time.hour + time.minute for time in clock.times]
    files.minutes, files.breaks = clock.minutes, interruptions(clock, base.rows)


def _overlap(files: FileColumns, base: CsvTable, others: list[str]) -> slice:
    """Return the rows of the load's file that all files cover; the report lists the others."""
    clock = files.clocks[base.path]
    complete = np.flatnonzero(~np.isnan([files.columns[name] for name in others]).any(axis=0))
    dated = {path: own.times for path, own in files.clocks.items() if not own.yearly}
    shown = "; ".join(
        f"{Path(path).name} from {times[0]} to {times[-1]}" for path, times in dated.items()
    )
    if not complete.size:
        raise DataError(f"no time is in all files: {shown}")
    kept = slice(int(complete[0]), int(complete[-1]) + 1)
    first, last = clock.times[kept][0], clock.times[kept][-1]
    for path, times in dated.items():
        inside = sum(first <= time < last + timedelta(minutes=clock.minutes) for time in times)
        if inside < len(times):
            why = "at times that not all files have"
            files.omissions.append((len(times) - inside, why, str(path)))
    steps = f"{kept.stop - kept.start} of {len(clock.times)} steps"
    files.notes.append(f"joined by time: all have {steps}, from {first} to {last} ({shown})")
    return kept


def _aligned(name: str, table: CsvTable, files: FileColumns, clock: Clock) -> list[float]:
    """Return a column of another file in the steps of the load's, NaN where part of one has none.

    A row counts until it ends or the next one begins, a price that is not written again within the
    hour until then; a step has the mean by time, and the grid is up in it if it is up throughout.
    """
    own, times = files.clocks[table.path], clock.times
    if own.yearly:
        # Standard time is the lesser offset of summer and winter.
        halves = [times[0].replace(month=month, day=1, tzinfo=files.zone) for month in (1, 7)]
        standard = timezone(min(half.utcoffset() or timedelta() for half in halves))
        times = [t.astimezone(standard).replace(year=_LEAP_YEAR, tzinfo=UTC) for t in times]
    starts, valid = spans_of(own)
    gaps = np.diff(starts, append=np.inf)
    held = (gaps <= _LONGEST_CARRIED) & (name in _CARRIED)
    stops = starts + np.where(held, gaps, np.minimum(valid, gaps))
    begins = np.array([time.timestamp() for time in times])
    ends = begins + clock.minutes * 60.0
    edges = np.unique(np.concatenate([starts, stops, begins, ends]))
    at = np.searchsorted(starts, edges, side="right") - 1
    known = (at >= 0) & (edges < stops[at])
    values = np.where(known, np.array(files.columns[name])[at], np.nan)
    # Of the parts between two edges, every other stretch is a step of the load's.
    parts = np.searchsorted(edges, np.stack([begins, ends], axis=1)).ravel()
    shares = np.diff(edges, append=edges[-1]) / (clock.minutes * 60.0)
    reduced = (
        np.minimum.reduceat(values, parts)
        if name == "up"
        else np.add.reduceat(values * shares, parts)
    )
    return list(map(float, reduced[::2]))
