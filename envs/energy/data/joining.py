"""Joining files by the times of their rows, and reading those that come without a load.

PVWatts has the hours of a typical year in the standard time of the place, the Transparency Platform
of ENTSO-E day-ahead prices by market time unit.
"""

import math
from datetime import UTC, datetime, timedelta, timezone
from itertools import compress
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.energy.data.clock import Clock, clock_of, interruptions
from tokengym.envs.energy.data.columns import MISSING, FileColumns, numbers
from tokengym.envs.intake.tables import CsvTable, Row

PVWATTS = "ac_system_output_(w)"
_LEAP_YEAR = 2000
"""Stands for any year."""
_UNIT = "mtu_("
_PRICE = "day-ahead_price"
_FIRST_AUCTION = ("", "without sequence", "sequence 1", "1")


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
    files.add("pv", table, [watts / 1000.0 for watts in numbers(table, PVWATTS)])


def find_prices(table: CsvTable) -> tuple[str, str] | None:
    """Return the columns of times and of prices in a file of ENTSO-E; `None` if it is none."""
    found = [[name for name in table.header if name.startswith(s)] for s in (_UNIT, _PRICE)]
    return (table.require(*found[0]), table.require(*found[1])) if all(found) else None


def read_prices(table: CsvTable, files: FileColumns) -> None:
    """`MTU (CET/CEST)` and `Day-ahead Price (EUR/MWh)`, of one area and its first auction.

    Files of several periods are one series.
    """
    unit, price = find_prices(table) or ("", "")
    earlier = files.tables.get("price")
    if earlier is not None and find_prices(earlier) == (unit, price):
        table.rows = earlier.rows + table.rows
        del files.tables["price"], files.columns["price"], files.clocks[earlier.path]
    # Standard times of Europe are zones of the database, with their summer times.
    zone = unit.removeprefix(_UNIT).rstrip(")").split("/")[0].upper()
    if zone not in available_timezones():
        raise DataError(f"{table.path}, line 1: {zone!r} is no zone of the time zone database")
    areas = sorted(set(table.texts("area"))) if table.has("area") else []
    if len(areas) > 1:
        raise DataError(f"{table.path}: prices of one area are needed, got those of {areas}")
    if table.has("sequence"):
        first = [row.cells["sequence"].lower() in _FIRST_AUCTION for row in table.rows]
        if not all(first):
            place = table.rows[first.index(False)].place
            files.omissions.append((first.count(False), "prices of a later auction", place))
        table.rows = list(compress(table.rows, first))
    # An hour that clocks skip has a row, and no price.
    table.rows = [row for row in table.rows if row.cells[price].lower() not in MISSING]
    starts = [_start_of(row, row.cells[unit]) for row in table.rows]
    files.clocks[table.path] = clock_of(table, starts, ZoneInfo(zone))
    files.add("price", table, [value / 1000.0 for value in numbers(table, price)])


def _start_of(row: Row, cell: str) -> datetime:
    """Return when a market time unit begins; `fold` is 1 where it is marked as standard time."""
    begins = cell.partition(" - ")[0]
    try:
        start = datetime.strptime(begins[:16].replace("/", "."), "%d.%m.%Y %H:%M")
    except ValueError as error:
        form = "a market time unit like 31/12/2025 23:00 - 01/01/2026 00:00"
        raise DataError(f"{row.place}: {cell!r} is not {form}") from error
    return start.replace(fold=int("(" in begins and "EST)" not in begins))


def join(files: FileColumns) -> None:
    """Bring the columns of files with times to the rows of the load's, where all have some.

    A step of the load has the mean of what another file has in it.

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
        kept = _overlap(files, base, list(others))
        clock, rows = clock._replace(times=clock.times[kept]), base.rows[kept]
        for name, table in files.tables.items():
            # A number that is missing is named by the load's row.
            files.columns[name], table.rows = files.columns[name][kept], rows
    files.minutes_of_day = [60 * time.hour + time.minute for time in clock.times]
    files.minutes, files.breaks = clock.minutes, interruptions(clock, base.rows)


def _overlap(files: FileColumns, base: CsvTable, others: list[str]) -> slice:
    """Return which rows of the load's file lie where all files have some; what does not is said."""
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
    """Return a column of another file at the times of the load's, NaN where it has none."""
    own, times = files.clocks[table.path], clock.times
    if own.yearly:
        # Standard time is the lesser offset of summer and winter.
        halves = [times[0].replace(month=month, day=1, tzinfo=files.zone) for month in (1, 7)]
        standard = timezone(min(half.utcoffset() or timedelta() for half in halves))
        times = [t.astimezone(standard).replace(year=_LEAP_YEAR, tzinfo=UTC) for t in times]
    parts = np.arange(0, clock.minutes, math.gcd(own.minutes, clock.minutes)) * 60.0
    wanted = np.array([time.timestamp() for time in times])[:, None] + parts
    starts = np.array([time.timestamp() for time in own.times])
    at = np.searchsorted(starts, wanted, side="right") - 1
    known = (at >= 0) & (wanted < starts[at] + own.minutes * 60)
    found = np.where(known, np.array(files.columns[name])[at], np.nan)
    return list(map(float, found.min(axis=1) if name == "up" else found.mean(axis=1)))
