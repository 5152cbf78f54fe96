"""The picture of a layout: slots, the depot, and tours as they are walked."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from tokengym.envs.core.palette import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PALE,
    PURPLE,
    RED,
    SKY,
)
from tokengym.envs.warehouse.layout import PITCH, AisleLayout, Cell, Layout, MapLayout

Point = tuple[int, int]
"""A place in steps: across (or column), along (or line)."""

_TOUR_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, BLACK)
_TOUR_LINES = ("-", "--", ":", "-.")
_WANTED, _RACK = "#fff0c2", "#f4f4f4"
_LANE = 0.45
_RACK_WIDTH = 1.0
_SPREAD = 0.3
_LETTERS = (7.0, 6.0, 5.0, 4.0)
"""Size in points of what is written on a slot, by its number of lines."""


def tour_path(layout: Layout, stops: Sequence[str]) -> list[Point]:
    """Return the corners of a tour from the depot through `stops` and back, in steps.

    Every piece is horizontal or vertical; together they are as long as the walk that is charged.
    """
    cells = {cell.name: cell for cell in layout.slots()}
    places = [layout.depot, *(cells[stop] for stop in stops), layout.depot]
    path = [point(layout, places[0])]
    for here, there in pairwise(places):
        if isinstance(layout, AisleLayout):
            path += _through_aisles(layout, here, there)
        else:
            path += _through_map(layout, here, there)
    return path


def point(layout: Layout, cell: Cell) -> Point:
    """Return where a cell lies."""
    return (PITCH * cell.aisle if isinstance(layout, AisleLayout) else cell.aisle, cell.row)


def _through_aisles(layout: AisleLayout, here: Cell, there: Cell) -> list[Point]:
    """Along the aisle, or through the nearer of the two cross-aisles."""
    x, end = PITCH * here.aisle, PITCH * there.aisle
    if here.aisle == there.aisle:
        return [(end, there.row)]
    back = layout.rows + 1
    through = here.row + there.row
    cross = 0 if through <= 2 * back - through else back
    corners = [(x, cross), (end, cross), (end, there.row)]
    return [corner for before, corner in pairwise([(x, here.row), *corners]) if corner != before]


def _through_map(layout: MapLayout, here: Cell, there: Cell) -> list[Point]:
    """Cell by cell along a shortest walk; shelves are entered only at its ends."""
    came: dict[Cell, Cell] = {here: here}
    waiting = deque([here])
    while there not in came:
        at = waiting.popleft()
        for cell in layout.next_to(at):
            if cell in came or (layout.is_shelf(cell) and cell != there):
                continue
            came[cell] = at
            waiting.append(cell)
    walked = [there]
    while walked[-1] != here:
        walked.append(came[walked[-1]])
    return [point(layout, cell) for cell in reversed(walked[:-1])]


def plot_layout(
    axes: Axes, layout: Layout, labels: Mapping[str, str], tours: Sequence[Sequence[str]]
) -> None:
    """Plot a layout with tours on it.

    Args:
        axes: where.
        layout: the layout.
        labels: what is written on slots, by name.
        tours: the slots of each tour in walking order.
    """
    if isinstance(layout, AisleLayout):
        _aisles(axes, layout)
    else:
        _map(axes, layout)
    _slots(axes, layout, labels)
    x, y = point(layout, layout.depot)
    gap = min(0.12, 2 * _SPREAD / max(len(tours), 1))
    for number, stops in enumerate(tours):
        _tour(axes, layout, stops, number, gap * (number - (len(tours) - 1) / 2))
    axes.plot([x], [y], "s", color=BLACK, ms=10, zorder=5)
    axes.annotate(
        "depot",
        (x, y),
        textcoords="offset points",
        xytext=(0, -17),
        ha="center",
        fontsize=8,
        zorder=6,
    )
    axes.set_aspect("equal", anchor="N")
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0)


def _aisles(axes: Axes, layout: AisleLayout) -> None:
    back, last = layout.rows + 1, PITCH * (layout.aisles - 1)
    end = last + _LANE + _RACK_WIDTH
    for aisle in range(layout.aisles):
        lane = (PITCH * aisle - _LANE, -_LANE)
        axes.add_patch(Rectangle(lane, 2 * _LANE, back + 2 * _LANE, color=PALE, lw=0, zorder=0))
    for row in (0, back):
        cross = (-_LANE, row - _LANE)
        axes.add_patch(Rectangle(cross, end + _LANE, 2 * _LANE, color=PALE, lw=0, zorder=0))
    axes.set_xticks(range(0, last + 1, PITCH), [f"A{a}" for a in range(layout.aisles)])
    rows = [str(row) for row in range(1, back)]
    axes.set_yticks(range(back + 1), ["front", *rows, "back"])
    axes.set_xlim(-0.8, end + 0.15)
    axes.set_ylim(-1.1, back + 0.6)
    axes.set_xlabel(f"aisle, {PITCH} steps apart")
    axes.set_ylabel("row, 1 step apart")


def _map(axes: Axes, layout: MapLayout) -> None:
    width, height = len(layout.lines[0]), len(layout.lines)
    axes.add_patch(Rectangle((-0.5, -0.5), width, height, color=PALE, lw=0, zorder=0))
    axes.set_xlim(-0.7, width - 0.3)
    axes.set_ylim(height - 0.3, -0.7)
    axes.set_xlabel("column, 1 step each")
    axes.set_ylabel("line, 1 step each")


def _slots(axes: Axes, layout: Layout, labels: Mapping[str, str]) -> None:
    """Plot all slots, as one collection: a map has hundreds."""
    across, width = (_LANE, _RACK_WIDTH) if isinstance(layout, AisleLayout) else (-0.45, 0.9)
    cells = sorted(layout.slots(), key=lambda cell: cell.name in labels)
    places = [point(layout, cell) for cell in cells]
    wanted = [cell.name in labels for cell in cells]
    axes.add_collection(
        PatchCollection(
            [Rectangle((x + across, y - 0.42), width, 0.84) for x, y in places],
            facecolors=[_WANTED if one else _RACK for one in wanted],
            edgecolors=[BLACK if one else "#b5b5b5" for one in wanted],
            linewidths=0.6,
            zorder=1,
        ),
        autolim=False,
    )
    for cell, (x, y) in zip(cells, places, strict=True):
        if (label := labels.get(cell.name)) is None:
            continue
        lines = label.count("\n") + 1
        axes.text(
            x + across + width / 2,
            y,
            label,
            ha="center",
            va="center",
            fontsize=_LETTERS[min(lines, len(_LETTERS)) - 1],
            linespacing=0.95,
            zorder=6,
        )


def _tour(axes: Axes, layout: Layout, stops: Sequence[str], number: int, shift: float) -> None:
    """Draw one tour, moved aside so that others on the same way stay visible."""
    colour, line = tour_style(number)
    if isinstance(layout, AisleLayout):
        ends = (0, layout.rows + 1)
        path = [(x + shift, y + shift if y in ends else y) for x, y in tour_path(layout, stops)]
    else:
        path = [(x + shift, y + shift) for x, y in tour_path(layout, stops)]
    axes.plot(*zip(*path, strict=True), color=colour, ls=line, lw=1.6, zorder=3)
    longest = max(
        pairwise(path), key=lambda leg: abs(leg[0][0] - leg[1][0]) + abs(leg[0][1] - leg[1][1])
    )
    (x, y), (to_x, to_y) = longest
    axes.annotate(
        "",
        (0.45 * x + 0.55 * to_x, 0.45 * y + 0.55 * to_y),
        (0.55 * x + 0.45 * to_x, 0.55 * y + 0.45 * to_y),
        arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.6, "shrinkA": 0, "shrinkB": 0},
        zorder=4,
    )
    cells = {cell.name: point(layout, cell) for cell in layout.slots()}
    down = 0.0 if isinstance(layout, AisleLayout) else shift
    places = [(cells[stop][0] + shift, cells[stop][1] + down) for stop in stops]
    axes.plot(*zip(*places, strict=True), "o", color=colour, ms=5, zorder=4)


def tour_style(number: int) -> tuple[str, str]:
    """Return colour and line style of the tour `number`, from 0: 28 different ones."""
    lines = number // len(_TOUR_COLOURS) % len(_TOUR_LINES)
    return _TOUR_COLOURS[number % len(_TOUR_COLOURS)], _TOUR_LINES[lines]
