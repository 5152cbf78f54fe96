"""The report on every row of a user's files."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rejection:
    """A row, or a part of one, that was not used.

    Attributes:
        file: name of the file as given.
        line: line the row begins on, from 1.
        reason: which field, what it held, what it needs.
    """

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        """Return `file:line: reason`."""
        return f"{self.file}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class DataReport:
    """Counts of rows and questions, and the rows that were not used.

    Attributes:
        rows: rows read.
        questions: questions they held.
        sizes: questions in use, by split.
        rejected: rows that were not used.
        refused: sources dated after the snapshot of their question, left out of it.
        merged: questions that repeated an earlier one and were merged with it.
        crossing_events: events open across the cutoff, dropped.
        crossing_questions: questions on those events.
        cutoff: the date that separates training from test, ISO 8601.
    """

    rows: int
    questions: int
    sizes: Mapping[str, int]
    rejected: tuple[Rejection, ...]
    refused: tuple[Rejection, ...]
    merged: int
    crossing_events: int
    crossing_questions: int
    cutoff: str

    def __str__(self) -> str:
        """Return the counts on one line and every rejection on a line of its own."""
        sizes = ", ".join(f"{size} {split}" for split, size in self.sizes.items())
        head = (
            f"{self.rows} rows, {self.questions} questions: {sizes} (cutoff {self.cutoff}); "
            f"{len(self.rejected)} rejected, {self.merged} merged, {len(self.refused)} sources "
            f"refused, {self.crossing_questions} dropped on {self.crossing_events} crossing events"
        )
        return "\n".join([head, *map(str, self.rejected), *map(str, self.refused)])
