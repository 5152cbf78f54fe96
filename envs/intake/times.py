"""Reading a point in time as users' files write it."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tokengym.envs.core.errors import DataError
from tokengym.envs.intake.numbers import read_identifier
from tokengym.envs.intake.quoting import quoted

EARLIEST_YEAR, LATEST_YEAR = 1900, 2199
"""Years of a plausible time: one outside them was written or read wrongly."""
TIME_FORMS = "an ISO 8601 time, YYYYMMDD[HHMM[SS]] or an epoch, of the years 1900 to 2199"
"""Formats that `read_time` accepts, for errors."""

_SECONDS_BELOW = 1e11
"""Epochs below it are seconds (until the year 5138), from it on milliseconds (since 1973)."""
_EPOCH = re.compile(r"\d{9,16}(\.\d+)?", re.ASCII)
"""An epoch as text, as cells of a table have it."""
_COMPACT = re.compile(
    r"((?:19|2[01])\d{6})(?:[T ]?(\d{4}(?:\d\d)?))?(Z|[+-]\d\d:?\d\d)?", re.I | re.A
)
"""A date, maybe a time and an offset, without signs between their parts; see `EARLIEST_YEAR`."""
_HOURLY = re.compile(r"(19|2[01])\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])([01]\d|2[0-3])", re.ASCII)
"""YYYYMMDDHH, which may as well be an epoch of the years 2030 to 2036."""


def zones_that_change(earlier: datetime, later: datetime, step: timedelta) -> set[str]:
    """Return the zones of the time zone database in which a step lies between two local times.

    Args:
        earlier: a time without an offset, before or at the change of clocks.
        later: the next one, after it.
        step: the time that passed between them.
    """
    shift = later - earlier - step
    return {
        zone.key
        for zone in _changing(earlier.date(), later.date())
        if shift in [_offset(later, zone, fold) - _offset(earlier, zone, 0) for fold in (0, 1)]
    }


@lru_cache(maxsize=1 << 10)
def _changing(first: date, last: date) -> tuple[ZoneInfo, ...]:
    """Return the zones whose clocks change from the start of a day to the end of another."""
    start, end = datetime.combine(first, time.min), datetime.combine(last, time.max)
    return tuple(zone for zone in _zones() if _offset(start, zone, 0) != _offset(end, zone, 1))


def _offset(local: datetime, zone: ZoneInfo, fold: int) -> timedelta:
    return local.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


@lru_cache(maxsize=1)
def _zones() -> tuple[ZoneInfo, ...]:
    return tuple(map(ZoneInfo, sorted(available_timezones())))


def read_time(value: object) -> datetime:
    """Return a time: ISO 8601 or compact, with the offset it has, or an epoch, in UTC.

    Args:
        value: text, or a number that means what its digits would mean as text; an epoch is in
            seconds or milliseconds since 1970.

    Raises:
        ValueError: if it is none of these, may be two of them, or lies outside the plausible years;
            the message goes on from the name of the value.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = read_identifier(str(value)) if number or isinstance(value, str) else ""
    if _HOURLY.fullmatch(text):
        raise ValueError(f"is {text}, an epoch or YYYYMMDDHH: write YYYYMMDDHHMM or ISO 8601")
    try:
        return _read(text)
    except (ValueError, OverflowError, OSError) as error:
        raise ValueError(f"must be {TIME_FORMS}, got {quoted(value)}") from error


def _read(text: str) -> datetime:
    """Return a time of a plausible year.

    Raises:
        ValueError, OverflowError, OSError: if it is none.
    """
    if parts := _COMPACT.fullmatch(text):
        day, clock, offset = parts.groups(default="")
        found = datetime.fromisoformat(f"{day}T{clock or '0000'}{offset.upper()}")
    elif _EPOCH.fullmatch(text):
        epoch = float(text)
        found = datetime.fromtimestamp(epoch if epoch < _SECONDS_BELOW else epoch / 1e3, UTC)
    else:
        # Python would take the ninth digit in a row for a sign between date and time.
        found = datetime.fromisoformat("" if text[:9].isdigit() else text)
    if not EARLIEST_YEAR <= found.year <= LATEST_YEAR:
        raise ValueError(f"it is of the year {found.year}")
    return found


def is_skipped(local: datetime, zone: ZoneInfo) -> bool:
    """Return whether the clocks of a zone skip a time, which has no offset."""
    return local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local


def localized(times: Sequence[datetime], zone: ZoneInfo, places: Sequence[str]) -> list[datetime]:
    """Return times with the offset that a zone has then; those without one are local to it.

    Of a time that clocks repeat, the first one given is the earlier, but for one with `fold` 1.

    Args:
        times: times with or without an offset.
        zone: a zone of the time zone database.
        places: where each was read, for errors.

    Raises:
        DataError: if clocks skip a time.
    """
    found: list[datetime] = []
    seen: Counter[tuple[datetime, int]] = Counter()
    for given, place in zip(times, places, strict=True):
        local = given.astimezone(zone) if given.tzinfo else given.replace(tzinfo=zone)
        if given.tzinfo is None:
            local = local.replace(fold=max(given.fold, min(seen[given, given.fold], 1)))
            if is_skipped(given, zone):
                raise DataError(f"{place}: time is {given}, which the clocks of {zone.key} skip")
            seen[given, given.fold] += 1
        # Times in one zone subtract as clocks on a wall do, those with an offset by what passed.
        found.append(local.replace(tzinfo=timezone(local.utcoffset() or timedelta()), fold=0))
    return found
