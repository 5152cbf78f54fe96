"""The clock of a plain file: its step, gaps and clock changes."""

import itertools
from collections import Counter
from datetime import datetime, timedelta
from zoneinfo import available_timezones

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import CsvTable, Row
from tokengym.envs.intake.times import TIME_FORMS, read_time, zones_that_change


def read_clock(table: CsvTable) -> tuple[list[int], int, dict[int, str]]:
    """Return the minute of the day of each row, the minutes of a step, and why the rows are cut.

    Times are ISO 8601, all with an offset or none, or epochs, which are UTC. With offsets a change
    of clocks is no gap in time, but the hour of the day jumps; without, it looks like a missing or
    a repeated hour, where a zone of the time zone database has all changes of the file. Both are
    cuts, named as what they are.

    Raises:
        DataError: naming file, line and reason, if a time cannot be read, some times have an
            offset and some none, the step is not a whole number of minutes, or times go back.
    """
    times = [_read(row, cell) for row, cell in zip(table.rows, table.texts("time"), strict=True)]
    if len(times) < 2:
        raise DataError(f"{table.path}: two rows at least are needed to know the length of a step")
    aware = times[0].tzinfo is not None
    for row, time in zip(table.rows, times, strict=True):
        if (time.tzinfo is not None) != aware:
            raise DataError(
                f"{row.place}: time is {row.cells['time']!r}: all times need an offset from UTC, "
                "or none of them"
            )
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    step = Counter(gap for gap in gaps if gap > timedelta()).most_common(1)
    if not step:
        raise DataError(f"{table.rows[1].place}: time does not go on from {times[0]}")
    length = step[0][0]
    minutes, rest = divmod(length.total_seconds(), 60.0)
    if rest or not minutes:
        place = table.rows[1].place
        raise DataError(f"{place}: a step of {length} is not a whole number of minutes")
    breaks = {}
    zones = available_timezones()
    for at, (earlier, later) in enumerate(itertools.pairwise(times), 1):
        reason = _interruption(earlier, later, length, table.rows[at], zones)
        if reason:
            breaks[at] = reason
    return [60 * time.hour + time.minute for time in times], int(minutes), breaks


def _read(row: Row, cell: str) -> datetime:
    try:
        return read_time(cell)
    except ValueError as error:
        raise DataError(f"{row.place}: time is {cell!r}, not {TIME_FORMS}") from error


def _interruption(
    earlier: datetime, later: datetime, step: timedelta, row: Row, zones: set[str]
) -> str:
    """Return why two rows are not consecutive; empty if they are.

    Args:
        earlier: time of the one.
        later: time of the other.
        step: length of a step.
        row: the other.
        zones: where the clocks have changed as in the file so far; a change leaves those with it.
    """
    wall = later.replace(tzinfo=None) - earlier.replace(tzinfo=None)
    passed = later - earlier
    forward = "forward" if wall > step else "back"
    if passed == step:
        return f"clocks go {forward}" if wall != step else ""
    changing = set() if later.tzinfo else zones & zones_that_change(earlier, later, step)
    if changing:
        zones &= changing
        return f"clocks go {forward} and times have no offset from UTC"
    if passed <= timedelta():
        raise DataError(
            f"{row.place}: time goes from {earlier} to {later}: rows must be in order, each time "
            "once"
        )
    if passed % step:
        raise DataError(
            f"{row.place}: {passed} after the previous row, not a multiple of the step of {step}"
        )
    return f"a gap of {passed // step - 1} steps of {step}"
