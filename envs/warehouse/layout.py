"""Layouts: slots, cross-aisles and walking distances.

Two types: parallel aisles between a front and a back cross-aisle, and any map of cells in the
characters of RWARE's layouts. Distances are worked out once per layout and shared.
"""

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from tokengym.envs.core.errors import TaskError

PITCH = 2
"""Steps between neighbouring aisles."""

_SLOT = re.compile(r"A(\d{1,3})-(\d{1,3})", re.IGNORECASE)
_SHELF, _GOAL, _WALKWAY = "x", "g", "."


class Cell(NamedTuple):
    """A place in a layout: an aisle (or column) and a row."""

    aisle: int
    row: int

    @property
    def name(self) -> str:
        """Its name in replies: `A2-7`."""
        return f"A{self.aisle}-{self.row}"


@dataclass(frozen=True)
class AisleLayout:
    """Parallel aisles, 2 steps apart, with slots in rows 1 to `rows` and cross-aisles at both ends.

    Attributes:
        aisles: number of aisles, `>= 1`; the depot stands at the front (row 0) of aisle 0.
        rows: slots in an aisle, `>= 1`; the back cross-aisle is row `rows + 1`.
    """

    aisles: int
    rows: int

    def __post_init__(self) -> None:
        """Refuse an empty layout."""
        if not (1 <= self.aisles <= 99 and 1 <= self.rows <= 99):
            raise TaskError(
                f"a layout has 1 to 99 aisles and rows, got {self.aisles} aisles, {self.rows} rows"
            )

    @property
    def depot(self) -> Cell:
        """The start and end of every trip."""
        return Cell(0, 0)

    def slots(self) -> list[Cell]:
        """Return every slot, aisle by aisle."""
        return [Cell(a, i) for a in range(self.aisles) for i in range(1, self.rows + 1)]

    def distances(self) -> list[list[int]]:
        """Return the walks in steps between all places, the depot first, then the slots."""
        places = [self.depot, *self.slots()]
        return [[self._walk(p, q) for q in places] for p in places]

    def _walk(self, p: Cell, q: Cell) -> int:
        if p.aisle == q.aisle:
            return abs(p.row - q.row)
        through = p.row + q.row
        return PITCH * abs(p.aisle - q.aisle) + min(through, 2 * (self.rows + 1) - through)


@dataclass(frozen=True)
class MapLayout:
    """A map of cells: shelves `x` are the slots, `g` and `.` are walked on, one cell a step.

    A shelf at column c of line r (both from 0) is the slot `Ac-r`. It is reached from the cells
    beside it and never walked through. The depot is the first `g`, reading line by line.

    Attributes:
        lines: the map, top line first, all of one length.
    """

    lines: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse a map that cannot be walked."""
        width = len(self.lines[0]) if self.lines else 0
        for number, line in enumerate(self.lines, start=1):
            if strange := sorted(set(line) - {_SHELF, _GOAL, _WALKWAY}):
                raise TaskError(f"line {number}: {strange}: a map is made of 'x', 'g' and '.'")
            if len(line) != width:
                raise TaskError(f"line {number}: {len(line)} cells, the first line has {width}")
        if not self._cells(_GOAL):
            raise TaskError("line 1: a map needs a goal 'g', where trips start and end")
        reached = self._steps_from(self.depot)
        if lost := [cell.name for cell in self.slots() if cell not in reached]:
            raise TaskError(f"line 1: no walkway leads from the goal to the shelves {lost}")

    @property
    def depot(self) -> Cell:
        """The start and end of every trip."""
        return self._cells(_GOAL)[0]

    def slots(self) -> list[Cell]:
        """Return every slot, line by line."""
        return self._cells(_SHELF)

    def distances(self) -> list[list[int]]:
        """Return the walks in steps between all places, the depot first, then the slots."""
        places = [self.depot, *self.slots()]
        steps = [self._steps_from(place) for place in places]
        return [[reached[place] for place in places] for reached in steps]

    def _is_shelf(self, cell: Cell) -> bool:
        """Return whether a cell is a shelf."""
        return self.lines[cell.row][cell.aisle] == _SHELF

    def _next_to(self, here: Cell) -> list[Cell]:
        """Return the cells one step from `here`; no step leads from a shelf to a shelf."""
        steps = ((1, 0), (-1, 0), (0, 1), (0, -1))
        cells = [Cell(here.aisle + column, here.row + row) for column, row in steps]
        height, width = len(self.lines), len(self.lines[0])
        inside = [cell for cell in cells if 0 <= cell.row < height and 0 <= cell.aisle < width]
        return [cell for cell in inside if not (self._is_shelf(here) and self._is_shelf(cell))]

    def _cells(self, kind: str) -> list[Cell]:
        return [
            Cell(column, row)
            for row, line in enumerate(self.lines)
            for column, character in enumerate(line)
            if character == kind
        ]

    def _steps_from(self, start: Cell) -> dict[Cell, int]:
        """Return the fewest steps to every reachable cell; shelves end a walk."""
        reached = {start: 0}
        waiting = deque([start])
        while waiting:
            here = waiting.popleft()
            for cell in self._next_to(here):
                if cell not in reached:
                    reached[cell] = reached[here] + 1
                    if not self._is_shelf(cell):
                        waiting.append(cell)
        return reached


Layout = AisleLayout | MapLayout


class Walks(NamedTuple):
    """Walking distances of a layout.

    Attributes:
        number: row and column of `steps` by slot name; the depot is 0 and has no name.
        steps: symmetric matrix of walks.
    """

    number: Mapping[str, int]
    steps: list[list[int]]

    def length(self, stops: Sequence[str]) -> int:
        """Return the steps of a trip from the depot along slots and back."""
        places = [0, *(self.number[stop] for stop in stops), 0]
        return sum(self.steps[a][b] for a, b in pairwise(places))


@lru_cache(maxsize=64)
def walks(layout: Layout) -> Walks:
    """Return the distances of `layout`, worked out once."""
    number = {cell.name: place for place, cell in enumerate(layout.slots(), start=1)}
    return Walks(number, layout.distances())


def slot_name(text: str) -> str:
    """Return the plain name of a slot however a reply writes it: `A2-7` for ` a02-07`.

    Raises:
        ValueError: if it is no slot name.
    """
    match = _SLOT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"a slot is written like A2-7, got {text!r}")
    return Cell(int(match[1]), int(match[2])).name


def layout_of(data: Mapping[str, Any]) -> Layout:
    """Read a layout from the plain form `{"aisles", "rows"}` or `{"map"}`.

    Raises:
        TaskError: if it describes no layout.
    """
    if "map" in data:
        return MapLayout(tuple(data["map"]))
    return AisleLayout(int(data["aisles"]), int(data["rows"]))


def plain_layout(layout: Layout) -> dict[str, Any]:
    """Return the plain form that `layout_of` reads."""
    if isinstance(layout, MapLayout):
        return {"map": list(layout.lines)}
    return {"aisles": layout.aisles, "rows": layout.rows}
