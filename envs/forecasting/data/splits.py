"""Splitting by event and time: training questions were resolved before test ones were asked.

Train holds the events closed before the cutoff, test those first seen on or after it; an event open
across the cutoff is in neither. All questions on an event stay together, but those of rounds, of
which the cutoff parts one horizon from another. Validation is the last slice of train by time. A
question of train that test asks again, in near-equal words for the same date, is dropped, and so is
one that tells the outcome of a question held out. Questions that were all asked at one time or in
rounds have no cutoff but the user's: they are split by event alone, and events that are asked about
in near-equal words are one.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from tokengym.envs.forecasting.data.record import QuestionRecord
from tokengym.envs.forecasting.data.telling import find_telling
from tokengym.envs.intake.near import group_by, group_near

_VALIDATION_SHARE = 0.15
_TRAIN_PER_TEST = 4
_UP_TO = {"train": 0.7, "validation": 0.85, "test": 1.0}
"""By split the share at which it ends, of a set that is split by event alone."""


class Event(NamedTuple):
    """The questions on one event, and the span of time in which they were open."""

    first_seen: datetime
    closed: datetime
    records: tuple[QuestionRecord, ...]


class Splits(NamedTuple):
    """The records in use by split, and what was dropped.

    Attributes:
        records: train in an order that mixes times, validation and test in order of time.
        crossing: the events that were open across the cutoff.
        cutoff: the moment that separates train from test; `None` if the split is by event alone.
        repeated: training questions that a later split repeats for the same date.
        telling: training questions that tell the outcome of one held out, with that one.
        near: how many questions are worded like one on another event.
    """

    records: Mapping[str, tuple[QuestionRecord, ...]]
    crossing: tuple[Event, ...]
    cutoff: datetime | None
    repeated: tuple[QuestionRecord, ...]
    telling: tuple[tuple[QuestionRecord, QuestionRecord], ...]
    near: int


def split(records: Sequence[QuestionRecord], cutoff: datetime | None) -> Splits:
    """Split records by event and time.

    Args:
        records: at least one.
        cutoff: separates train from test; if `None`, chosen by `best_cutoff`, or none where all
            events were first seen at one time or are asked about in rounds.
    """
    wording = dict(zip(map(id, records), group_near([r.question for r in records]), strict=True))
    events_worded: dict[int, set[str]] = defaultdict(set)
    for record in records:
        events_worded[wording[id(record)]].add(record.event)
    near = sum(len(events_worded[wording[id(record)]]) > 1 for record in records)

    def dated(record: QuestionRecord) -> tuple[str, int] | None:
        # A question without a date may recur.
        by = record.resolves_by
        return None if by is None else (by.isoformat(), wording[id(record)])

    events = _events(records)
    repeated: tuple[QuestionRecord, ...] = ()
    crossing: tuple[Event, ...] = ()
    timeless = len({event.first_seen for event in events}) == 1 or all(r.rounds for r in records)
    if cutoff is None and timeless and len({record.event for record in records}) > 1:
        parts = _split_by_event(records, wording)
    else:
        cutoff = best_cutoff(events) if cutoff is None else cutoff
        test = [event for event in events if event.first_seen >= cutoff]
        asked = {dated(record) for record in _questions(test)} - {None}
        closed = _questions([event for event in events if event.closed < cutoff])
        repeated = tuple(record for record in closed if dated(record) in asked)
        learned = [record for record in closed if dated(record) not in asked]
        # Validation shares no event with train, also of rounds; rows may come in any order.
        train = sorted(
            _events(learned, rounds=False), key=lambda e: (e.closed, min(map(_mixed, e.records)))
        )
        crossing = tuple(event for event in events if event.first_seen < cutoff <= event.closed)
        last = len(train) - round(_VALIDATION_SHARE * len(train))
        late, early = _questions(train[last:]), _questions(train[:last])
        asked = {dated(record) for record in late} - {None}
        repeated += tuple(record for record in early if dated(record) in asked)
        early = [record for record in early if dated(record) not in asked]
        parts = {"train": early, "validation": late, "test": _questions(test)}
    telling = tuple(find_telling(parts["train"], [*parts["validation"], *parts["test"]]))
    told = {id(record) for record, _ in telling}
    parts["train"] = [record for record in parts["train"] if id(record) not in told]
    order = {"train": _in_time if cutoff is None else _mixed}
    ordered = {
        name: tuple(sorted(part, key=order.get(name, _in_time))) for name, part in parts.items()
    }
    return Splits(ordered, crossing, cutoff, repeated, telling, near)


def _split_by_event(
    records: Sequence[QuestionRecord], wording: Mapping[int, int]
) -> dict[str, list[QuestionRecord]]:
    """Split in an order given by a hash of the ids: nothing in it depends on outcomes."""
    joined: dict[int, list[QuestionRecord]] = defaultdict(list)
    keys = [[record.event, wording[id(record)]] for record in records]
    for record, group in zip(records, group_by(keys), strict=True):
        joined[group].append(record)
    events = sorted(joined.values(), key=lambda questions: min(map(_mixed, questions)))
    parts: dict[str, list[QuestionRecord]] = {name: [] for name in _UP_TO}
    done = 0
    for questions in events:
        share = (done + len(questions) / 2) / len(records)
        parts[next(name for name, end in _UP_TO.items() if share < end)] += questions
        done += len(questions)
    return parts


def best_cutoff(events: Sequence[Event]) -> datetime:
    """Return the first time of an event that best splits events four to one.

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


def _events(records: Sequence[QuestionRecord], *, rounds: bool = True) -> list[Event]:
    """Return the events; with `rounds`, each horizon of questions in rounds is one."""
    by_event: dict[tuple[str, str], list[QuestionRecord]] = defaultdict(list)
    for record in records:
        by_event[record.event, record.key if rounds and record.rounds else ""].append(record)
    return [
        Event(min(r.asked_at for r in group), max(r.closed_at for r in group), tuple(group))
        for group in by_event.values()
    ]


def _questions(events: Sequence[Event]) -> list[QuestionRecord]:
    return [record for event in events for record in event.records]


def _in_time(record: QuestionRecord) -> tuple[datetime, str, str, str]:
    return (record.asked_at, record.event, record.part, record.key)


def _mixed(record: QuestionRecord) -> bytes:
    """Order by a hash, so that the Tasks of a batch are not all on one week's events."""
    return hashlib.sha256(f"{record.event}\n{record.key}".encode()).digest()
