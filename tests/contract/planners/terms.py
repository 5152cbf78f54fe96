"""Reading the clauses of a shift from the sentences of its prompt, and what they come to."""

import re
from collections.abc import Collection
from typing import NamedTuple

_NAMES = r"O\d+(?:(?:, | and )O\d+)*"
_TOGETHER = r"one customer|One customer|consignment|together: for|until all are|is not back, none"
_FIRST = r"first trip|opening trip|before O\d+ does|before anything else"

Names = frozenset[str]


class Closure(NamedTuple):
    """When trips cannot leave: all of them, or those with an order or to an aisle."""

    concerns: str
    start: int
    end: int


class Terms(NamedTuple):
    """The clauses of a shift.

    Attributes:
        closures: when trips cannot leave.
        sides: orders that are fined when they ride with those of the other side, and the fine.
        first: the order that goes first, and the fine.
        gold: orders that earn more on time, and how many times as much.
        group: orders that earn together.
    """

    closures: list[Closure]
    sides: tuple[Names, Names, int]
    first: tuple[str, int]
    gold: tuple[Names, int]
    group: Names

    def leaves(self, names: Collection[str], slots: Collection[str], time: int) -> int:
        """Return when a trip leaves that would leave at `time`."""
        about = {"", *names, *(slot.partition("-")[0] for slot in slots)}
        while any(c.concerns in about and c.start <= time < c.end for c in self.closures):
            time += 1
        return time

    def fine(self, gone: Collection[str], names: Collection[str]) -> int:
        """Return what a trip is fined."""
        one, other, fine = self.sides
        late = self.first[0] not in names and not gone
        return fine * bool(one & {*names} and other & {*names}) + self.first[1] * late

    def paid(self, gone: Names, names: Names) -> Names:
        """Return the orders that earn when a trip is back; `gone` left before."""
        own = names - self.group
        return own | self.group if names & self.group and self.group <= gone | names else own


NO_TERMS = Terms([], (frozenset(), frozenset(), 0), ("", 0), (frozenset(), 1), frozenset())
"""Those of a shift without clauses."""


def read_terms(text: str) -> Terms | None:
    """Read the clauses of a prompt; `None` if it states none."""
    found = re.search(r"These terms apply today:\n(.+)\nNone of them refuses", text, re.S)
    if found is None:
        return None
    terms, lines = NO_TERMS, found[1].splitlines()
    assert len(lines) == 3
    for line in lines:
        terms = with_clause(terms, line)
    return terms


def with_clause(terms: Terms, line: str) -> Terms:
    """Return terms with the clause that a line states."""
    lists = [frozenset(re.findall(r"O\d+", names)) for names in re.findall(_NAMES, line)]
    if "$" in line:
        fine = int(re.findall(r"\$(\d+)", line)[0])
        if re.search(_FIRST, line):
            return terms._replace(first=(min(lists[0]), fine))
        one, other = lists
        return terms._replace(sides=(one, other, fine))
    if factor := re.search(r"(\d+) times", line):
        return terms._replace(gold=(lists[0], int(factor[1])))
    if re.search(_TOGETHER, line):
        return terms._replace(group=lists[0])
    return terms._replace(closures=[*terms.closures, _closure(line)])


def _closure(line: str) -> Closure:
    times = [int(number) for number in re.findall(r"(?<![\w-])\d+", line)]
    length = re.search(r"(\d+) units of time", line)
    if length:
        times.remove(int(length[1]))
        times.append(times[0] + int(length[1]))
    concerned = re.findall(r"\b[OA]\d+", line)
    start, end = [0, *times][-2:]
    return Closure(concerned[0] if concerned else "", start, end)
