"""Times and periods of a user's file: whole numbers, timestamps, dates, months and ISO weeks."""

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_WEEK = re.compile(r"(\d{4})-?W(\d{2})(?:-?[1-7])?", re.ASCII | re.IGNORECASE)
_MONTH = re.compile(r"(\d{4})-(\d{2})", re.ASCII)
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
    if re.fullmatch(r"-?\d{1,9}", cell, re.ASCII):
        return Moment("number", int(cell))
    if found := _WEEK.fullmatch(cell):
        return Moment("week", _monday(cell, int(found[1]), int(found[2])) // 7)
    if found := _MONTH.fullmatch(cell):
        if not 1 <= int(found[2]) <= 12:
            raise ValueError(f"{cell!r} is not a month")
        return Moment("month", 12 * int(found[1]) + int(found[2]) - 1)
    try:
        moment = datetime.fromisoformat(cell)
    except ValueError:
        raise ValueError(f"{cell!r} is not {_FORMS}") from None
    kind = "time" if moment.tzinfo is None else "zoned"
    plain = moment if moment.tzinfo is None else moment.astimezone(UTC)
    minutes = plain.replace(tzinfo=None) - datetime(1970, 1, 1)
    return Moment(kind, minutes // timedelta(minutes=1))


def _monday(cell: str, year: int, week: int) -> int:
    """Return the day number of a week's Monday."""
    try:
        return date.fromisocalendar(year, week, 1).toordinal()
    except ValueError:
        raise ValueError(f"{cell!r} is no ISO week") from None


class Calendar:
    """Periods of a file as consecutive whole numbers.

    Timestamps and dates follow each other in steps of their greatest common divisor, so days,
    weeks that begin on any day, and hours are found by themselves; dates that are all the first of
    a month are months.

    Args:
        moments: all periods of the file, at least one, all of one kind.
    """

    def __init__(self, moments: Iterable[Moment]) -> None:
        known = set(moments)
        self._kind = next(iter(known)).kind
        counts = sorted(moment.at for moment in known)
        self._first, self._step = counts[0], 1
        self._monthly = False
        if self._kind in ("time", "zoned"):
            starts = [_EPOCH + timedelta(minutes=count) for count in counts]
            self._monthly = len(starts) > 1 and all(
                (start.day, start.hour, start.minute) == (1, 0, 0) for start in starts
            )
            self._step = math.gcd(*(count - counts[0] for count in counts)) or _DAY_MINUTES

    def number(self, moment: Moment) -> int:
        """Return the number of a period: itself if it is one, else counted from the earliest."""
        if self._kind == "number":
            return moment.at
        if self._monthly:
            first, start = (_EPOCH + timedelta(minutes=count) for count in (self._first, moment.at))
            return 12 * (start.year - first.year) + start.month - first.month
        return (moment.at - self._first) // self._step

    def label(self, number: int) -> str:
        """Write a period as the file would."""
        if self._kind == "number":
            return str(number)
        count = self._first + number * self._step
        if self._kind == "week":
            year, week, _ = date.fromordinal(7 * count + 1).isocalendar()
            return f"{year}-W{week:02d}"
        if self._kind == "month":
            return f"{count // 12}-{count % 12 + 1:02d}"
        start = _EPOCH + timedelta(minutes=count)
        if self._monthly:
            first = _EPOCH + timedelta(minutes=self._first)
            months = 12 * first.year + first.month - 1 + number
            return f"{months // 12}-{months % 12 + 1:02d}-01"
        return start.isoformat(" ", "minutes").removesuffix(" 00:00")


_EPOCH = datetime(1970, 1, 1)
