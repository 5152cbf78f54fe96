"""Splitting by event and time: what is trained on was over before what is tested on was asked.

Train holds the events closed before the cutoff, test those first seen on or after it; an event open
across the cutoff is in neither. All questions on an event stay together. Validation is the last
slice of train by time.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tokengym.envs.forecasting.data.record import Record

_VALIDATION_SHARE = 0.15
_TRAIN_PER_TEST = 4


class Event(NamedTuple):
    """The questions on one event, and the span of time in which they were open."""

    first_seen: datetime
    closed: datetime
    records: tuple[Record, ...]


class Splits(NamedTuple):
    """The records in use by split, and what was dropped.

    Attributes:
        records: train in an order that mixes times, validation and test in order of time.
        crossing: the events that were open across the cutoff.
        cutoff: the moment that separates train from test.
    """

    records: Mapping[str, tuple[Record, ...]]
    crossing: tuple[Event, ...]
    cutoff: datetime


def split(records: Sequence[Record], cutoff: datetime | None) -> Splits:
    """Split records by event and time.

    Args:
        records: at least one.
        cutoff: separates train from test; chosen by `best_cutoff` if `None`.
    """
    events = _events(records)
    cutoff = best_cutoff(events) if cutoff is None else cutoff
    train = sorted((event for event in events if event.closed < cutoff), key=lambda e: e.closed)
    test = [event for event in events if event.first_seen >= cutoff]
    crossing = tuple(event for event in events if event.first_seen < cutoff <= event.closed)
    last = len(train) - round(_VALIDATION_SHARE * len(train))
    return Splits(
        {
            "train": tuple(sorted(_questions(train[:last]), key=_mixed)),
            "validation": tuple(sorted(_questions(train[last:]), key=_in_time)),
            "test": tuple(sorted(_questions(test), key=_in_time)),
        },
        crossing,
        cutoff,
    )


def best_cutoff(events: Sequence[Event]) -> datetime:
    """Return the first sight of an event that best leaves four training events to one for test.

    Among the moments at which an event was first seen it takes the one with the largest
    min(train / 4, test): dropping few events and giving each side its share. Where no moment
    leaves anything to train on, it is the first of all, and everything is test.
    """
    starts = sorted(event.first_seen for event in events)
    ends = sorted(event.closed for event in events)
    best, best_value, closed = starts[0], 0.0, 0
    for number, start in enumerate(starts):
        while closed < len(ends) and ends[closed] < start:
            closed += 1
        value = min(closed / _TRAIN_PER_TEST, len(starts) - number)
        if value > best_value:
            best, best_value = start, value
    return best


def _events(records: Sequence[Record]) -> list[Event]:
    by_event: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_event[record.event].append(record)
    return [
        Event(min(r.asked_at for r in group), max(r.closed_at for r in group), tuple(group))
        for group in by_event.values()
    ]


def _questions(events: Sequence[Event]) -> list[Record]:
    return [record for event in events for record in event.records]


def _in_time(record: Record) -> tuple[datetime, str, str]:
    return (record.asked_at, record.event, record.key)


def _mixed(record: Record) -> bytes:
    """Order by a hash: consecutive Tasks of a batch should not be on one week's events."""
    return hashlib.sha256(f"{record.event}\n{record.key}".encode()).digest()
