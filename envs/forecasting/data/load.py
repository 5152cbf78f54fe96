"""From a user's files to records in splits, with every guard against leaking the answer.

A row that cannot be used is reported and the rest is used. Guards: sources dated after the snapshot
are refused, questions asked when the answer was known are rejected, repeats are merged, and what is
left is split by event and time. `instance.py` decides which fields of a record may be shown.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.forecasting.data.fields import moment
from tokengym.envs.forecasting.data.headings import read_columns
from tokengym.envs.forecasting.data.reading import QuestionReading
from tokengym.envs.forecasting.data.record import QuestionRecord, RowError
from tokengym.envs.forecasting.data.report import GUARDS
from tokengym.envs.forecasting.data.splits import split
from tokengym.envs.intake.files import sha256
from tokengym.envs.intake.report import Guard, IntakeReport, group_dropped, note_empty

_SHOWN = 20
"""Questions that tell an outcome and are named."""


class Dataset(Immutable):
    """The records of some files, in splits; shared by every world that plays them.

    A pickled dataset holds the files' names and is read again where it arrives.

    Attributes:
        records: the records in use by split.
        report: the report on every row.
        base_rate: share of yes among the yes/no questions of train; ½ where there are none.
        ordered: whether any question has outcomes in order.
    """

    def __init__(
        self,
        origin: tuple[Any, ...],
        records: Mapping[str, tuple[QuestionRecord, ...]],
        report: IntakeReport,
    ) -> None:
        self._origin = origin
        self.records = records
        self.report = report
        outcomes = [record.outcome for record in records["train"] if not record.labels]
        self.base_rate = fmean(outcomes) if outcomes else 0.5
        self.ordered = any(record.ordered for part in records.values() for record in part)

    def __reduce__(self) -> tuple[Callable[..., "Dataset"], tuple[Any, ...]]:
        """Pickle as a reading of the same files, which must not have changed."""
        return _load, self._origin


def load_dataset(
    paths: str | Path | Sequence[str | Path],
    cutoff: str | None = None,
    columns: str | Mapping[str, str] | None = None,
) -> Dataset:
    """Read files of resolved questions; the fields of a row determine its format.

    Args:
        paths: a file, a folder of them, or several of either.
        cutoff: ISO 8601 date or time that separates training from test; chosen by the data if
            `None`.
        columns: headings of the plain format's fields, such as `question=Question`.

    Raises:
        DataError: if a file cannot be read, the cutoff is no date, or no row can be used.
        OptionError: if `columns` is not as `read_columns` reads it.
    """
    origins = (paths,) if isinstance(paths, str | Path) else tuple(paths)
    files = [file for path in origins for file in _files(Path(path).expanduser().resolve())]
    if not files:
        raise DataError(f"data needs at least one file, got {[str(path) for path in origins]}")
    named = tuple(read_columns(columns).items())
    return _load(tuple(files), cutoff, named, tuple(map(sha256, files)))


@lru_cache(maxsize=8)
def _load(
    files: tuple[Path, ...],
    cutoff: str | None,
    columns: tuple[tuple[str, str], ...],
    digests: tuple[str, ...],
) -> Dataset:
    """Read files that have these contents, once per process."""
    if tuple(map(sha256, files)) != digests:
        names = ", ".join(map(str, files))
        raise DataError(f"the files have changed since they were read: {names}")
    moment_of_cutoff = _cutoff(cutoff)
    reading = QuestionReading(dict(columns))
    for file in files:
        reading.read(file)
    records = reading.usable()
    parts = split(records, moment_of_cutoff)
    times = list(reading.repeats())
    boundary = parts.cutoff
    used = [record for part in parts.records.values() for record in part]
    found = {
        "late_sources": len(reading.late_sources),
        "undated_sources": sum(source.dated is None for r in used for source in r.sources),
        "prices": sum(record.price is not None for record in used),
        "closing_times": sum(
            record.resolves_by is None or record.closed_at.date() < record.resolves_by
            for record in used
        ),
        "asked_late": reading.asked_late,
        "straddling": sum(boundary is not None and min(of) < boundary <= max(of) for of in times),
        "crossing": sum(len(event.records) for event in parts.crossing),
        "merged": sum(len(of) - 1 for of in times),
        "repeated": len(parts.repeated),
        "telling": len(parts.telling),
        "near": parts.near,
    }
    telling = [
        f"{question.key[:60]} tells the outcome of {other.key[:60]}: not in train"
        for question, other in parts.telling[:_SHOWN]
    ]
    sizes = {name: len(part) for name, part in parts.records.items()}
    cut = "" if boundary is None else boundary.isoformat()
    # Of one time or in rounds, no date separates questions by itself.
    how = f"cutoff {cut}" if cut else "split by question, all asked at one time or in rounds"
    spans = [_span(name, part) for name, part in parts.records.items() if part]
    counts = f"questions: {reading.questions:,}; {how}"
    report = IntakeReport(
        reading.rows,
        group_dropped((1, row.kind, str(row.place)) for row in reading.rejected),
        {name: Guard(found[name], *GUARDS[name]) for name in GUARDS},
        (*note_empty(sizes), *reading.notes, *telling, counts, *spans),
        (*map(str, reading.rejected), *map(str, reading.late_sources)),
    )
    return Dataset((files, cutoff, columns, digests), parts.records, report)


def _span(name: str, records: Sequence[QuestionRecord]) -> str:
    """Describe the questions of a split."""
    outcomes = [record.outcome for record in records if not record.labels]
    asked = [record.asked_at.date().isoformat() for record in records]
    yes = f", {fmean(outcomes):.1%} of {len(outcomes):,} yes" if outcomes else ""
    events = len({record.event for record in records})
    return f"{name}: {events:,} events{yes}, asked {min(asked)} to {max(asked)}"


def _files(path: Path) -> list[Path]:
    """Return the files of a folder, whatever they are called, or the file itself."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")


def _cutoff(cutoff: str | None) -> datetime | None:
    if cutoff is None:
        return None
    try:
        return moment({"cutoff": cutoff}, "cutoff")
    except RowError as error:
        raise DataError(str(error)) from error
