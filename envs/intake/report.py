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


@dataclass(frozen=True)
class IntakeReport:
    """What was read of a user's files, what was left out, and what was understood.

    Attributes:
        rows: rows read, by file.
        sizes: what a split holds, by split.
        dropped: rows that were not used, the commonest reason first.
        notes: what is missing or was understood, a sentence each; first what matters most.
        guards: what would have leaked or stood in two splits without the guards, counted.
    """

    rows: Mapping[str, int]
    sizes: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[Dropped, ...] = ()
    notes: tuple[str, ...] = ()
    guards: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> int:
        """How many rows were not used."""
        return sum(one.rows for one in self.dropped)

    def __str__(self) -> str:
        """Write everything, a line each."""
        sizes = ", ".join(f"{size} {split}" for split, size in self.sizes.items())
        read = ", ".join(f"{name} {count:,}" for name, count in self.rows.items())
        empty = [split for split, size in self.sizes.items() if not size]
        lines = [*self.notes, f"rows: {read}{sizes and f'; {sizes}'}; {self.refused} refused"]
        lines += [f"nothing is left for {' and '.join(empty)}"] * bool(empty)
        lines += [f"{one.rows} rows: {one.why} ({one.first})" for one in self.dropped]
        lines += [f"{count} {what}" for what, count in self.guards.items() if count]
        return "\n".join(lines)


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
