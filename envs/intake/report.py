"""The report on a user's files, the same for all worlds."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Dropped(NamedTuple):
    """Rows that were not used, for one reason.

    Attributes:
        rows: how many.
        why: the reason, without the values of a row.
        first: file, line and row of the first.
    """

    rows: int
    why: str
    first: str


class Guard(NamedTuple):
    """What would have leaked the answer, or joined two splits, without a guard.

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
    """What was read of a user's files, what was left out, and what was understood.

    Attributes:
        rows: rows read, by file.
        sizes: what a split holds, by split; empty where that depends on the level.
        dropped: rows that were not used, the commonest reason first.
        guards: by name, what would have leaked.
        notes: what is missing or was understood, a sentence each; first what matters most.
        every: every refusal, a line each.
    """

    rows: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    guards: Mapping[str, Guard] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    every: tuple[str, ...] = ()

    @property
    def summary(self) -> "IntakeReport":
        """This report, as every world's report has one."""
        return self

    def __str__(self) -> str:
        """Write everything, a line each."""
        sizes = ", ".join(f"{size} {split}" for split, size in self.sizes.items())
        read = ", ".join(f"{name} {count:,}" for name, count in self.rows.items())
        refused = sum(one.rows for one in self.dropped)
        lines = [*self.notes, f"rows: {read}{sizes and f'; {sizes}'}; {refused} refused"]
        lines += [f"{one.rows} rows: {one.why} ({one.first})" for one in self.dropped]
        found = [guard for guard in self.guards.values() if guard.found]
        lines += [f"{guard.found} {guard.what}: {guard.done}" for guard in found]
        return "\n".join(lines)


def note_empty(sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Return a sentence on the splits that hold nothing; none if all hold something."""
    empty = [split for split, size in sizes.items() if not size]
    return (f"nothing is left for {' and '.join(empty)}",) if empty else ()


def count_reasons(refused: Iterable[tuple[int, str, str]]) -> tuple[Dropped, ...]:
    """Count rows by reason, the commonest first.

    Args:
        refused: of each refusal its rows, the reason and the place.
    """
    rows: Counter[str] = Counter()
    first: dict[str, str] = {}
    for count, why, place in refused:
        rows[why] += count
        first.setdefault(why, place)
    return tuple(Dropped(count, why, first[why]) for why, count in rows.most_common())
