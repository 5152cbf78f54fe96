"""Rows to records: parsing, refusing what leaks the answer, merging repeats."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from tokengym.envs.core.errors import DataError
from tokengym.envs.forecasting.data.formats import (
    autocast,
    manifold,
    metaculus,
    plain,
    polymarket,
    prophet_arena,
)
from tokengym.envs.forecasting.data.formats.forecastbench import Pairing
from tokengym.envs.forecasting.data.headings import Headings
from tokengym.envs.forecasting.data.record import (
    BackgroundText,
    Parsed,
    QuestionRecord,
    Row,
    RowError,
    RowPlace,
)
from tokengym.envs.forecasting.data.report import Rejection
from tokengym.envs.intake.names import Watched, name_unknown
from tokengym.envs.intake.near import normal_form
from tokengym.envs.intake.quoting import quoted
from tokengym.envs.intake.rows import read_rows
from tokengym.envs.intake.text import clean, clean_line

_FORMATS = (prophet_arena, manifold, polymarket, autocast, metaculus)
"""The formats of others; every other row is in the plain one, under whatever headings."""
_IDS = ("id", "submission_id")
_MOST_ID = 60

_Key = tuple[str, str, tuple[str, ...]]
"""Identity of a question: event, words, and names of the outcomes."""


class QuestionReading:
    """The records read so far.

    Args:
        columns: headings of the plain format's fields, where they have others.

    Attributes:
        rows: rows read, by file.
        questions: questions in them.
        rejected: rows that were not used.
        late_sources: sources later than the snapshot of their question.
        notes: what was understood of the files, a sentence each.
        asked_late: questions that were asked when the answer was out.
    """

    def __init__(self, columns: Mapping[str, str] | None = None) -> None:
        self._columns = columns or {}
        self.rows: dict[str, int] = {}
        self.questions = 0
        self.asked_late = 0
        self.rejected: list[Rejection] = []
        self.late_sources: list[Rejection] = []
        self.notes: list[str] = []
        self._kept: dict[_Key, tuple[QuestionRecord, RowPlace]] = {}
        self._snapshots: dict[_Key, list[datetime]] = {}
        self._asked: dict[tuple[str, str], _Key] = {}
        self._contradicted: set[_Key] = set()
        self._pairing = Pairing()

    def read(self, path: Path) -> None:
        """Add the rows of a file."""
        self.rows.setdefault(path.name, 0)
        names: dict[str, None] = {}
        asked: set[str] = set()
        headings = Headings(path, self._columns)
        for result in read_rows(path):
            self.rows[path.name] += 1
            place = RowPlace(path.name, result.number, result.line, _identity(result.row))
            try:
                if result.row is None:
                    raise RowError(result.reason)
                row = Watched(result.row)
                if self._pairing.take(row, place):
                    continue
                row, questions = _records(row, result.number, headings)
            except RowError as error:
                self._reject(place, str(error))
                continue
            names |= dict.fromkeys(row)
            asked |= row.asked
            for parsed in questions:
                self._add(parsed, place)
        self.notes += headings.notes()
        unused = name_unknown(names, asked)
        if unused:
            self.notes.append(f"{path.name}: fields that are not used: {unused}")

    def repeats(self) -> Iterator[tuple[datetime, ...]]:
        """Yield the times at which each repeated question was asked."""
        return (tuple(times) for times in self._snapshots.values() if len(times) > 1)

    def usable(self) -> list[QuestionRecord]:
        """Return the records in use.

        Raises:
            DataError: if there is none.
        """
        for parsed, place in self._pairing.joined():
            self._add(parsed, place)
        self._pairing = Pairing()
        for key in self._contradicted:
            _, place = self._kept.pop(key)
            self._snapshots.pop(key)
            self._reject(place, "another row contradicts its outcome")
        self._contradicted.clear()
        records = [record for record, _ in self._kept.values()]
        if records:
            return records
        first = (
            "; ".join(map(str, self.rejected[:3])) or "the files are empty, or have a heading alone"
        )
        rows = sum(self.rows.values())
        raise DataError(f"no question can be used out of {rows} rows: {first}")

    def _add(self, record: Parsed, place: RowPlace) -> None:
        if isinstance(record, RowError):
            self._reject(place, str(record))
            return
        self.questions += 1
        if record.asked_at >= record.closed_at:
            asked, closed = record.asked_at.isoformat(), record.closed_at.isoformat()
            self.asked_late += 1
            self._reject(place, f"asked at {asked}, when the answer was already known, at {closed}")
            return
        try:
            record = self._cleaned(record, place)
        except ValueError as error:
            self._reject(place, str(error))
            return
        words = normal_form(record.question) or record.question
        key = (normal_form(record.event), words, tuple(map(str.casefold, record.labels)))
        if self._asked.setdefault((record.key, record.part), key) != key:
            key_shown = quoted(record.key)
            self._reject(place, f"the id was used before for another question: {key_shown}")
        elif key not in self._kept:
            self._kept[key] = (record, place)
            self._snapshots[key] = [record.asked_at]
        elif self._kept[key][0].outcome != record.outcome:
            self._contradicted.add(key)
            other = self._kept[key][1]
            self._reject(place, f"contradicts the outcome of the same question: {other}")
        else:
            self._merge(key, record)

    def _merge(self, key: _Key, record: QuestionRecord) -> None:
        self._snapshots[key].append(record.asked_at)
        other, place = self._kept[key]
        # The earliest snapshot is the longest forecast, the latest closing the safest to split by.
        early, late = sorted((other, record), key=lambda r: (r.asked_at, r.key))
        closed = max(early.closed_at, late.closed_at)
        self._kept[key] = (replace(early, closed_at=closed), place)

    def _reject(self, place: RowPlace, reason: str) -> None:
        self.rejected.append(Rejection(place, reason))

    def _cleaned(self, record: QuestionRecord, place: RowPlace) -> QuestionRecord:
        """Return the record with clean texts, without sources from after its snapshot.

        Raises:
            ValueError: if a text is too long, or nothing is left of the question or an outcome.
        """
        for source in record.sources:
            if source.dated is not None and source.dated > record.asked_at:
                reason = f"a source is later than the snapshot: {source.dated.isoformat()}"
                self.late_sources.append(Rejection(place, reason))
        sources = (
            BackgroundText(clean(source.text), source.dated)
            for source in record.sources
            if source.dated is None or source.dated <= record.asked_at
        )
        question, labels = clean_line(record.question), tuple(map(clean_line, record.labels))
        if not question or not all(labels) or len(set(labels)) < len(labels):
            raise RowError("nothing that can be seen is left of the question or of an outcome")
        return replace(
            record,
            question=question,
            background=clean(record.background),
            labels=labels,
            sources=tuple(source for source in sources if source.text),
        )


def _records(row: Watched, number: int, headings: Headings) -> tuple[Watched, list[Parsed]]:
    """Return the row, under the names of its format, and the questions in it."""
    for form in _FORMATS:
        if form.recognises(row):
            questions: list[Parsed] = form.records(row)
            return row, questions
    named = Watched(headings.plain(row, number))
    if not plain.recognises(named):
        missing = [name for name in plain.REQUIRED if name not in named]
        raise RowError(
            f"no known format has these fields: {sorted(map(str, row))}; the plain one lacks "
            f"{missing}"
        )
    return named, plain.records(named)


def _identity(row: Row | None) -> str:
    """Return the start of a row's id for reports; empty for a row without an id."""
    values = ((row or {}).get(name) for name in _IDS)
    return next((str(value)[:_MOST_ID] for value in values if isinstance(value, str | int)), "")
