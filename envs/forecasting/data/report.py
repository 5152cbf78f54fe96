"""The report on every row of a user's files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tokengym.envs.forecasting.data.record import Place
from tokengym.envs.intake.report import Guard, IntakeReport, group_dropped

_DETAIL = re.compile(r", got |: ")
GUARDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "late_sources": ("sources dated after their question was asked", "left out"),
        "undated_sources": ("sources without a date, which cannot be checked", "shown"),
        "prices": ("questions with a market price", "hidden unless show_prices=true"),
        "closing_times": (
            "questions whose closing time was not known when asked",
            "never shown; it orders the splits",
        ),
        "asked_late": ("questions asked when the answer was already known", "dropped"),
        "straddling": ("questions asked on both sides of the cutoff", "only the first is kept"),
        "crossing": ("questions on events open across the cutoff", "dropped"),
        "merged": ("questions that repeat an earlier one", "merged with it"),
        "repeated": ("training questions held out again for the same date", "dropped"),
        "telling": ("training questions that tell the outcome of one held out", "dropped"),
        "near": ("questions worded like one on another event", "in one split for one date"),
    }
)
"""By guard what it finds and what is done about it."""


@dataclass(frozen=True)
class Rejection:
    """A row, or a part of one, that was not used.

    Attributes:
        place: file, row, line and id.
        reason: which field, what it held, what it needs.
    """

    place: Place
    reason: str

    @property
    def kind(self) -> str:
        """The reason without the values of this row."""
        return _DETAIL.split(self.reason, maxsplit=1)[0]

    def __str__(self) -> str:
        """Return `file:line: row 3, id 'q3': reason`."""
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True)
class Leaks:
    """How often each guard in `GUARDS` found what would have leaked the answer or joined splits.

    Split by event, near questions are in one split; split by time, those for the same date are.
    """

    late_sources: int
    undated_sources: int
    prices: int
    closing_times: int
    asked_late: int
    straddling: int
    repeated: int
    telling: int
    near: int


@dataclass(frozen=True)
class DataReport:
    """Counts of rows and questions, and the rows that were not used.

    Attributes:
        rows: rows read, by file.
        questions: questions they held.
        sizes: questions in use, by split.
        rejected: rows that were not used.
        refused: sources dated after the snapshot of their question, left out of it.
        merged: questions that repeated an earlier one and were merged with it.
        crossing_events: events open across the cutoff, dropped.
        crossing_questions: questions on those events.
        cutoff: the date that separates training from test, ISO 8601; empty if none does.
        leaks: what would have leaked without the guards.
        notes: what is missing or was understood, one sentence each.
        spans: what each split holds, one sentence each.
    """

    rows: Mapping[str, int]
    questions: int
    sizes: Mapping[str, int]
    rejected: tuple[Rejection, ...]
    refused: tuple[Rejection, ...]
    merged: int
    crossing_events: int
    crossing_questions: int
    cutoff: str
    leaks: Leaks
    notes: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()

    @property
    def summary(self) -> IntakeReport:
        """The report in the form that all worlds have."""
        counts = {"crossing": self.crossing_questions, "merged": self.merged}
        found = {**vars(self.leaks), **counts}
        return IntakeReport(
            self.rows,
            self.sizes,
            group_dropped((1, row.kind, str(row.place)) for row in self.rejected),
            {name: Guard(found[name], *GUARDS[name]) for name in GUARDS},
            (*self.notes, f"questions: {self.questions:,}; {self.how_split}", *self.spans),
            (*map(str, self.rejected), *map(str, self.refused)),
        )

    @property
    def how_split(self) -> str:
        """How the questions were split, for people."""
        if self.cutoff:
            return f"cutoff {self.cutoff}"
        return "split by question: all were asked at one time, so no date can separate them"

    def __str__(self) -> str:
        """Return the counts, and every rejection on a line of its own."""
        summary = self.summary
        return "\n".join([str(summary), *summary.every])
