"""The clocks of files with times: their steps, gaps and clock changes."""

import itertools
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import CsvTable, Row
from tokengym.envs.intake.times import localized, read_time, zones_that_change
from tokengym.rewards.arrays import Floats

_LEAST_PERIOD = 6
"""Steps in a row that are as long as each other, so that they are steps and no gaps."""
_MOST_CHANGES = 4
"""Changes of the step that a report lists."""


class Clock(NamedTuple):
    """The times of a table.

    Attributes:
        times: at which each row begins.
        minutes: length of the commonest step.
        yearly: whether they are of any year, in the standard time of the place.
        ends: at which each row ends, where the file states it.
    """

    times: list[datetime]
    minutes: int
    yearly: bool = False
    ends: list[datetime] | None = None


def clock_of(table: CsvTable, times: list[datetime], zone: ZoneInfo | None) -> Clock:
    """Return the clock of a table; its rows are put in order where their times have an offset.

    Args:
        table: the table.
        times: of its rows, all with an offset from UTC or none.
        zone: of times without one; `None` leaves them as they are.

    Raises:
        DataError: naming file, line and reason, if a time comes twice or is one that clocks skip,
            some have an offset and some none, or the step is not a whole number of minutes.
    """
    if len(times) < 2:
        raise DataError(f"{table.path}: two rows at least are needed to know the length of a step")
    if zone is not None:
        times = localized(times, zone, [row.place for row in table.rows])
    aware = times[0].tzinfo is not None
    for row, time in zip(table.rows, times, strict=True):
        if (time.tzinfo is not None) != aware:
            raise DataError(
                f"{row.place}: time is {time.isoformat()!r}: all times need an offset from UTC, "
                "or none of them"
            )
    if aware:
        order = sorted(range(len(times)), key=times.__getitem__)
        times, table.rows = [times[at] for at in order], [table.rows[at] for at in order]
        for at, (earlier, later) in enumerate(itertools.pairwise(times), 1):
            if earlier == later:
                raise DataError(f"{table.rows[at].place}: time {later} comes twice")
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    step = Counter(gap for gap in gaps if gap > timedelta()).most_common(1)
    if not step:
        raise DataError(f"{table.rows[1].place}: time does not go on from {times[0]}")
    minutes, rest = divmod(step[0][0].total_seconds(), 60.0)
    if rest or not minutes:
        place = table.rows[1].place
        raise DataError(f"{place}: a step of {step[0][0]} is not a whole number of minutes")
    return Clock(times, int(minutes))


def read_clock(table: CsvTable, zone: ZoneInfo | None) -> Clock:
    """Return the clock of a table with a column `time`, without rows whose time is unreadable.

    Raises:
        DataError: as `clock_of` does, or if too many times cannot be read.
    """
    return clock_of(table, table.readable(_read, "time"), zone)


def spans_of(clock: Clock) -> tuple[Floats, Floats]:
    """Return when each row begins, in seconds since 1970, and for how many seconds it is.

    It is for as long as the file states, else as the steps of its period: a new one begins where
    rows come closer together, or keep a longer distance several times; other distances are gaps.
    """
    starts, *ends = (
        np.array([time.timestamp() for time in times])
        for times in (clock.times, clock.ends)
        if times
    )
    if ends:
        return starts, ends[0] - starts
    gaps = np.diff(starts).tolist()
    step, lengths = min(gaps[:2]), list[float]()
    for gap, run in itertools.groupby(gaps):
        count = len(list(run))
        step = gap if gap < step or count >= _LEAST_PERIOD else step
        lengths += [step] * count
    return starts, np.array([*lengths, step])


def periods_of(clock: Clock) -> str:
    """Say how long the steps of a clock are, and from when to when."""
    _, lengths = spans_of(clock)
    said, changes = f"steps of {lengths[0] / 60:g} min", np.flatnonzero(np.diff(lengths)) + 1
    for at in changes[:_MOST_CHANGES].tolist():
        said += f" until {clock.times[at]}, {lengths[at] / 60:g} min from {clock.times[at]}"
    more = len(changes) - _MOST_CHANGES
    return said + f" and {more} changes more" * (more > 0)


def interruptions(clock: Clock, rows: Sequence[Row]) -> dict[int, str]:
    """Return why the rows of a clock are cut, by the number of the row after the cut.

    With offsets a change of clocks is no gap in time, but the hour of the day jumps; without, it
    looks like a missing or a repeated hour, where a zone of the time zone database has all changes
    of the file. Both are cuts, named as what they are.

    Raises:
        DataError: naming file, line and reason, if times go back or are between two steps.
    """
    zones = available_timezones()
    length = timedelta(minutes=clock.minutes)
    found = {}
    for at, (earlier, later) in enumerate(itertools.pairwise(clock.times), 1):
        reason = _interruption(earlier, later, length, rows[at], zones)
        if reason:
            found[at] = reason
    return found


def _read(row: Row, column: str) -> datetime:
    try:
        return read_time(row.cells[column])
    except ValueError as error:
        raise DataError(f"{row.place}: time {error}") from error


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
