"""The report on a user's files, the same for all worlds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Dropped(NamedTuple):
    """Rows that are not used for one reason, or places where a series is cut.

    Attributes:
        rows: how many rows; 0 where nothing but the connection is lost.
        why: the reason, without the values of a row.
        places: file, line and row of each, in order.
    """

    rows: int
    why: str
    places: tuple[str, ...]

    def __str__(self) -> str:
        """State the reason, the number and the first places."""
        count = len(self.places)
        places = ", ".join(self.places[:2]) + f" and {count - 2} more" * (count > 2)
        rows = f"{self.rows} row{'s' * (self.rows != 1)} left out: " if self.rows else "cut: "
        return f"{rows}{self.why} ({places})"


class Guard(NamedTuple):
    """A leak of the answer, or an overlap of splits, that a guard removed.

    Attributes:
        found: how often.
        what: what it is.
        done: what is done about it.
    """

    found: int
    what: str
    done: str


@dataclass(frozen=True)
class IntakeReport:
    """Report on a user's files: records read and left out, and how columns were understood.

    Attributes:
        rows: rows read, by file.
        dropped: rows that were not used and cuts, by reason.
        guards: by name, what would have leaked.
        notes: what is missing or was understood, a sentence each; first what matters most.
        every: every refusal, a line each.
    """

    rows: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    guards: Mapping[str, Guard] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    every: tuple[str, ...] = ()

    @property
    def refused(self) -> int:
        """How many rows were not used."""
        return sum(one.rows for one in self.dropped)

    def __str__(self) -> str:
        """Write everything, a line each."""
        read = ", ".join(f"{name} {count:,}" for name, count in self.rows.items())
        lines = [*self.notes, f"rows: {read}; {self.refused} refused"]
        lines += map(str, self.dropped)
        found = [guard for guard in self.guards.values() if guard.found]
        lines += [f"{guard.found} {guard.what}: {guard.done}" for guard in found]
        return "\n".join(lines)


def note_empty(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence on the splits that hold nothing; none if all hold something."""
    empty = [split for split, size in sizes.items() if not size]
    return (f"nothing is left for {' and '.join(empty)}",) if empty else ()


def group_dropped(refused: Iterable[tuple[int, str, str]]) -> tuple[Dropped, ...]:
    """Group rows by reason, in order of appearance.

    Args:
        refused: of each refusal its rows, the reason and the place.
    """
    rows: Counter[str] = Counter()
    places: dict[str, list[str]] = {}
    for count, why, place in refused:
        rows[why] += count
        places.setdefault(why, []).append(place)
    return tuple(Dropped(rows[why], why, tuple(at)) for why, at in places.items())
