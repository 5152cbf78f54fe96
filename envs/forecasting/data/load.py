"""From a user's files to records in splits, with every guard against leaking the answer.

A row that cannot be used is reported and the rest is used. Guards: sources dated after the snapshot
are refused, questions asked when the answer was out are rejected, repeats are merged, and what is
left is split by event and time. What may be shown of a record is decided in `ask.py`.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any, Self

from tokengym.envs.core.errors import DataError
from tokengym.envs.forecasting.data.fields import moment
from tokengym.envs.forecasting.data.formats import plain, prophet_arena
from tokengym.envs.forecasting.data.neutral import neutral
from tokengym.envs.forecasting.data.record import Record, Row, RowError, Source
from tokengym.envs.forecasting.data.report import DataReport, Rejection
from tokengym.envs.forecasting.data.rows import read_rows
from tokengym.envs.forecasting.data.splits import split

_FORMATS = (prophet_arena, plain)

_Key = tuple[str, str, tuple[str, ...]]
"""What makes two rows the same question: event, words, and names of the outcomes."""


class Dataset:
    """The records of some files, in splits. Shared by every world that asks them.

    A pickled dataset holds the files' names and is read again where it arrives.

    Attributes:
        records: the records in use by split.
        report: what became of every row.
        base_rate: share of yes among the yes/no questions of train; ½ where there are none.
    """

    def __init__(
        self, origin: tuple[Any, ...], records: Mapping[str, tuple[Record, ...]], report: DataReport
    ) -> None:
        self._origin = origin
        self.records = records
        self.report = report
        outcomes = [record.outcome for record in records["train"] if not record.labels]
        self.base_rate = fmean(outcomes) if outcomes else 0.5

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Nothing in it changes: a copy is the dataset itself."""
        return self

    def __reduce__(self) -> tuple[Callable[..., "Dataset"], tuple[Any, ...]]:
        """Pickle as the reading of the same files, which must not have changed."""
        return _load, self._origin


def load_dataset(paths: str | Path | Sequence[str | Path], cutoff: str | None = None) -> Dataset:
    """Read files of resolved questions; the format of each row is told by its fields.

    Args:
        paths: one file or several.
        cutoff: ISO 8601 date or time that separates training from test; chosen by the data if
            `None`.

    Raises:
        DataError: if a file cannot be read, the cutoff is no date, or no row can be used.
    """
    files = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    if not files:
        raise DataError("data needs at least one file")
    names = tuple(str(Path(file).expanduser().resolve()) for file in files)
    return _load(names, cutoff, tuple(map(_digest, names)))


@lru_cache(maxsize=8)
def _load(names: tuple[str, ...], cutoff: str | None, digests: tuple[str, ...]) -> Dataset:
    """Read files that have these contents; read once a process."""
    if tuple(map(_digest, names)) != digests:
        raise DataError(f"the files have changed since they were read: {', '.join(names)}")
    moment_of_cutoff = _cutoff(cutoff)
    reading = _Reading()
    for name in names:
        reading.read(Path(name))
    records = reading.usable()
    parts = split(records, moment_of_cutoff)
    report = DataReport(
        rows=reading.rows,
        questions=reading.questions,
        sizes={name: len(part) for name, part in parts.records.items()},
        rejected=tuple(reading.rejected),
        refused=tuple(reading.refused),
        merged=reading.merged,
        crossing_events=len(parts.crossing),
        crossing_questions=sum(len(event.records) for event in parts.crossing),
        cutoff=parts.cutoff.isoformat(),
    )
    return Dataset((names, cutoff, digests), parts.records, report)


class _Reading:
    """Rows on their way to records."""

    def __init__(self) -> None:
        self.rows = 0
        self.questions = 0
        self.merged = 0
        self.rejected: list[Rejection] = []
        self.refused: list[Rejection] = []
        self._kept: dict[_Key, tuple[Record, tuple[str, int]]] = {}
        self._asked: dict[str, _Key] = {}
        self._contradicted: set[_Key] = set()

    def read(self, path: Path) -> None:
        """Add the rows of a file."""
        for line, row, reason in read_rows(path):
            self.rows += 1
            place = (path.name, line)
            try:
                if row is None:
                    raise RowError(reason)
                found = _records(row)
            except RowError as error:
                self._reject(place, str(error))
                continue
            self.questions += len(found)
            for record in found:
                self._add(record, place)

    def usable(self) -> list[Record]:
        """Return the records in use.

        Raises:
            DataError: if there is none.
        """
        for key in self._contradicted:
            _, place = self._kept.pop(key)
            self._reject(place, "another row contradicts its outcome")
        self._contradicted.clear()
        records = [record for record, _ in self._kept.values()]
        if records:
            return records
        first = "; ".join(map(str, self.rejected[:3])) or "the files hold no rows"
        raise DataError(f"no question can be used out of {self.rows} rows: {first}")

    def _add(self, record: Record, place: tuple[str, int]) -> None:
        if record.asked_at >= record.closed_at:
            asked, closed = record.asked_at.isoformat(), record.closed_at.isoformat()
            self._reject(place, f"asked at {asked}, when the answer was out at {closed}")
            return
        record = self._neutral(record, place)
        key = (record.event, _folded(record.question), tuple(map(_folded, record.labels)))
        if self._asked.setdefault(record.key, key) != key:
            self._reject(place, f"the id {record.key!r} was used before for another question")
        elif key not in self._kept:
            self._kept[key] = (record, place)
        elif self._kept[key][0].outcome != record.outcome:
            self._contradicted.add(key)
            file, line = self._kept[key][1]
            self._reject(place, f"contradicts the outcome of the same question at {file}:{line}")
        else:
            self._merge(key, record)

    def _merge(self, key: _Key, record: Record) -> None:
        self.merged += 1
        other, place = self._kept[key]
        # The earliest snapshot is the longest forecast, the latest closing the safest to split by.
        early, late = sorted((other, record), key=lambda r: (r.asked_at, r.key))
        closed = max(early.closed_at, late.closed_at)
        self._kept[key] = (replace(early, closed_at=closed), place)

    def _reject(self, place: tuple[str, int], reason: str) -> None:
        self.rejected.append(Rejection(*place, reason))

    def _neutral(self, record: Record, place: tuple[str, int]) -> Record:
        """Return the record with harmless text, without sources from after its snapshot."""
        for source in record.sources:
            if source.dated is not None and source.dated > record.asked_at:
                reason = f"source dated {source.dated.isoformat()} is later than the snapshot"
                self.refused.append(Rejection(*place, reason))
        sources = (
            Source(neutral(source.text), source.dated)
            for source in record.sources
            if source.dated is None or source.dated <= record.asked_at
        )
        return replace(
            record,
            question=neutral(record.question),
            background=neutral(record.background),
            labels=tuple(map(neutral, record.labels)),
            sources=tuple(source for source in sources if source.text),
        )


def _records(row: Row) -> list[Record]:
    for form in _FORMATS:
        if form.recognises(row):
            found: list[Record] = form.records(row)
            return found
    raise RowError(f"no known format has the fields {sorted(map(str, row))}")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _cutoff(cutoff: str | None) -> datetime | None:
    if cutoff is None:
        return None
    try:
        return moment({"cutoff": cutoff}, "cutoff")
    except RowError as error:
        raise DataError(str(error)) from error


def _digest(name: str) -> str:
    try:
        return hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error}") from error
