"""Times and periods of a user's file: whole numbers, timestamps, dates, months and ISO weeks."""

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.tables import Row
from tokengym.envs.intake.times import EARLIEST_YEAR, LATEST_YEAR, read_time

_WEEK = re.compile(r"\d{4}-?W\d{2}(-?[1-7])?", re.ASCII | re.IGNORECASE)
_MONTH = re.compile(r"\d{4}-\d{2}", re.ASCII)
_NUMBER = re.compile(r"-?\d{1,9}(\.0)?", re.ASCII)
_DATE = re.compile(r"(19|2[01])\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(\.0)?", re.ASCII)
"""YYYYMMDD, as no number of a period is written."""
_EPOCH = datetime(1970, 1, 1)
_DAY_MINUTES = 24 * 60
_FORMS = "a whole number, a time like 2024-05-03 08:15, a date, a month or an ISO week 2024-W05"


class Moment(NamedTuple):
    """A time as written in a file.

    Attributes:
        kind: `number`, `time` (without a time zone), `zoned`, `month` or `week`.
        at: the number itself, minutes, months or weeks since a fixed one.
    """

    kind: str
    at: int


def read_moment(cell: str) -> Moment:
    """Read a time or a period.

    A timestamp counts whole minutes; with a time zone, those of UTC.

    Raises:
        ValueError: if the cell is in none of the forms.
    """
    if _NUMBER.fullmatch(cell) and not _DATE.fullmatch(cell):
        return Moment("number", int(float(cell)))
    try:
        week, month = _WEEK.fullmatch(cell), _MONTH.fullmatch(cell)
        if (week or month) and not EARLIEST_YEAR <= int(cell[:4]) <= LATEST_YEAR:
            raise ValueError(f"must be of the years {EARLIEST_YEAR} to {LATEST_YEAR}")
        if week:
            return Moment("week", (date.fromisoformat(cell.upper()).toordinal() - 1) // 7)
        if month:
            first = date.fromisoformat(f"{cell}-01")
            return Moment("month", 12 * first.year + first.month)
        moment = read_time(cell)
    except ValueError as error:
        raise ValueError(f"{cell!r} is not {_FORMS}: it {error}") from None
    kind = "time" if moment.tzinfo is None else "zoned"
    plain = moment if moment.tzinfo is None else moment.astimezone(UTC)
    minutes = plain.replace(tzinfo=None) - _EPOCH
    return Moment(kind, minutes // timedelta(minutes=1))


def moment_of(row: Row, column: str, kind: str | None) -> Moment:
    """Return the time in a cell; `kind` is that of the file's first one, `None` if it is it.

    Raises:
        DataError: if it is no time, or of another kind.
    """
    cell = row.text(column)
    try:
        moment = read_moment(cell)
    except ValueError as error:
        raise DataError(f"{row.place}: {column}: {error}") from error
    if kind not in (None, moment.kind):
        raise DataError(f"{row.place}: {column} is {cell!r}, written unlike others of the file")
    if moment.kind == "number":
        row.whole(column, 0)
    return moment


def numbered(moments: Iterable[Moment]) -> dict[Moment, int]:
    """Return the periods of a file, all of one kind, with consecutive whole numbers from 0.

    Timestamps and dates follow each other in steps of their greatest common divisor, so days,
    weeks that begin on any day, and hours are found by themselves; dates that are all the first of
    a month are months.
    """
    known = sorted(set(moments))
    first, step = known[0].at, 1
    if known[0].kind in ("time", "zoned"):
        starts = [_EPOCH + timedelta(minutes=moment.at) for moment in known]
        if len(known) > 1 and all((t.day, t.hour, t.minute) == (1, 0, 0) for t in starts):
            months = [12 * start.year + start.month for start in starts]
            return {moment: n - months[0] for moment, n in zip(known, months, strict=True)}
        step = math.gcd(*(moment.at - first for moment in known)) or _DAY_MINUTES
    return {moment: (moment.at - first) // step for moment in known}
