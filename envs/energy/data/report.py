"""The report on a user's files: rows read, rows left out and why, assumptions made."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tokengym.envs.intake.report import Dropped, IntakeReport


class LeftOut(NamedTuple):
    """Rows that are not played, or a place that no window crosses.

    Attributes:
        why: the reason.
        rows: how many rows are left out; 0 where the series is only cut.
        places: file and line of each, in order.
    """

    why: str
    rows: int
    places: tuple[str, ...]

    def __str__(self) -> str:
        """State the reason, the number and the first places."""
        count = len(self.places)
        places = ", ".join(self.places[:2]) + f" and {count - 2} more" * (count > 2)
        rows = f"{self.rows} row{'s' * (self.rows != 1)} left out: " if self.rows else "cut: "
        return f"{rows}{self.why} ({places})"


class SeriesReport(NamedTuple):
    """What was read.

    Attributes:
        formats: by file its path and what it was taken for.
        rows: rows in each file.
        left_out: rows left out and cuts, by reason.
        notes: what was understood or is drawn instead, one sentence each.
        uncounted: demand in the files that is not part of the load; empty if there is none.
    """

    formats: tuple[tuple[str, str], ...] = ()
    rows: int = 0
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    uncounted: str = ""

    @property
    def refused(self) -> int:
        """Rows that are left out."""
        return sum(part.rows for part in self.left_out)

    @property
    def summary(self) -> IntakeReport:
        """The report in the form that all worlds have."""
        formats = [f"{Path(path).name}: {kind}" for path, kind in self.formats]
        return IntakeReport(
            {Path(path).name: self.rows for path, _ in self.formats},
            dropped=tuple(Dropped(one.rows, one.why, one.places[0]) for one in self.left_out),
            notes=(*[self.uncounted] * bool(self.uncounted), *formats, *self.notes),
            every=tuple(f"{place}: {one.why}" for one in self.left_out for place in one.places),
        )

    def __str__(self) -> str:
        """Write everything, a line each."""
        lines = [self.uncounted] if self.uncounted else []
        lines += [f"{path}: {kind}, {self.rows} rows" for path, kind in self.formats]
        return "\n".join([*lines, *map(str, self.left_out), *self.notes])


def group_left_out(omissions: Sequence[tuple[str, str, bool]]) -> tuple[LeftOut, ...]:
    """Group (reason, place, whether a row is lost) by reason, in order of appearance."""
    places: dict[tuple[str, bool], list[str]] = {}
    for why, place, lost in omissions:
        places.setdefault((why, lost), []).append(place)
    return tuple(
        LeftOut(why, len(at) if lost else 0, tuple(at)) for (why, lost), at in places.items()
    )
