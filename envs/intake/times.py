"""Reading a point in time as users' files write it."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, timezone
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from tokengym.envs.core.errors import DataError

TIME_FORMS = "an ISO 8601 time or an epoch"
"""What `read_time` reads, for errors."""

_SECONDS_BELOW = 1e11
"""Epochs below it are seconds (until the year 5138), from it on milliseconds (since 1973)."""
_EPOCH = re.compile(r"\d{9,16}(\.\d+)?", re.ASCII)
"""An epoch as text, as cells of a table have it."""


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
    """Return a time: ISO 8601, with the offset it has, or an epoch, in UTC.

    Args:
        value: text, or seconds or milliseconds since 1970 as a number.

    Raises:
        ValueError: if it is none of these, or beyond the calendar.
    """
    if isinstance(value, str) and not _EPOCH.fullmatch(value.strip()):
        return datetime.fromisoformat(value.strip())
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError(f"a time must be {TIME_FORMS}, got {value!r}")
    try:
        epoch = float(value)
        return datetime.fromtimestamp(epoch if abs(epoch) < _SECONDS_BELOW else epoch / 1e3, UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{value!r} is beyond the calendar") from error


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
            if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0) != given:
                raise DataError(f"{place}: time is {given}, which the clocks of {zone.key} skip")
            seen[given, given.fold] += 1
        # Times in one zone subtract as clocks on a wall do, those with an offset by what passed.
        found.append(local.replace(tzinfo=timezone(local.utcoffset() or timedelta()), fold=0))
    return found
