"""The picture of a layout: slots, the depot, and tours as they are walked."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from tokengym.envs.core.palette import BLACK, BLUE, GREEN, ORANGE, PALE, PURPLE, RED, SKY
from tokengym.envs.warehouse.layout import PITCH, AisleLayout, Cell, Layout, MapLayout

Point = tuple[int, int]
"""A place in steps: across (or column), along (or line)."""

_TOUR_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, RED, BLACK)
_TOUR_LINES = ("-", "--", ":", "-.")
_WANTED, _RACK = "#fff0c2", "#f4f4f4"
_LANE = 0.45
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
    steps, walked = layout.steps_from(here), [there]
    while walked[-1] != here:
        nearer = steps[walked[-1]] - 1
        around = [cell for cell in layout.next_to(walked[-1]) if steps.get(cell) == nearer]
        walked.append(next(cell for cell in around if cell == here or not layout.is_shelf(cell)))
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
    beside = isinstance(layout, AisleLayout)  # of an aisle the slots lie, on a map they are walked
    cells = sorted(layout.slots(), key=lambda cell: cell.name in labels)
    places = {cell.name: point(layout, cell) for cell in cells}
    across, width = (_LANE, 1.0) if beside else (-_LANE, 2 * _LANE)
    boxes = [Rectangle((x + across, y - 0.42), width, 0.84) for x, y in places.values()]
    colours = [_WANTED if name in labels else _RACK for name in places]
    slots = PatchCollection(boxes, facecolors=colours, edgecolors="#b5b5b5", linewidths=0.6)
    axes.add_collection(slots)
    for name, label in labels.items():
        x, y = places[name]
        size = _LETTERS[min(label.count("\n"), len(_LETTERS) - 1)]
        middle = x + across + width / 2
        axes.text(middle, y, label, ha="center", va="center", fontsize=size, zorder=6)
    gap = min(0.12, 2 * _SPREAD / max(len(tours), 1))
    for number, stops in enumerate(tours):
        _tour(axes, layout, stops, number, gap * (number - (len(tours) - 1) / 2))
    x, y = point(layout, layout.depot)
    axes.plot([x], [y], "s", color=BLACK, ms=10, zorder=5)
    axes.annotate("depot", (x, y), (9, -12), textcoords="offset points", fontsize=8, zorder=6)
    if isinstance(layout, AisleLayout):
        aisles = range(layout.aisles)
        axes.set_xticks([PITCH * aisle for aisle in aisles], [f"A{aisle}" for aisle in aisles])
        rows = [str(row) for row in range(1, layout.rows + 1)]
        axes.set_yticks(range(layout.rows + 2), ["front", *rows, "back"])
        axes.plot([0, 0], [0, layout.rows + 1], alpha=0.0)  # both cross-aisles, walked or not
    else:
        axes.invert_yaxis()
    axes.set_aspect("equal", anchor="N")
    axes.margins(0.08)
    axes.set_facecolor(PALE)
    axes.tick_params(length=0)


def _tour(axes: Axes, layout: Layout, stops: Sequence[str], number: int, shift: float) -> None:
    """Draw one tour, moved aside so that others on the same way stay visible."""
    colour, line = tour_style(number)
    path = [(x + shift, y + shift) for x, y in tour_path(layout, stops)]
    axes.plot(*zip(*path, strict=True), color=colour, ls=line, lw=1.6, zorder=3)
    cells = {cell.name: point(layout, cell) for cell in layout.slots()}
    places = [(cells[stop][0] + shift, cells[stop][1] + shift) for stop in stops]
    axes.plot(*zip(*places, strict=True), "o", color=colour, ms=5, zorder=4)


def tour_style(number: int) -> tuple[str, str]:
    """Return colour and line style of the tour `number`, from 0: 28 different ones."""
    lines = number // len(_TOUR_COLOURS) % len(_TOUR_LINES)
    return _TOUR_COLOURS[number % len(_TOUR_COLOURS)], _TOUR_LINES[lines]
