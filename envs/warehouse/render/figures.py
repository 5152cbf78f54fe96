"""The picture of an episode: layout, tours and deadlines; stock, orders, lost sales by day."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from tokengym.envs.core.palette import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PALE,
    RED,
    SKY,
    figure,
)
from tokengym.envs.core.rollout import Record
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.lease_session import CompiledLease
from tokengym.envs.warehouse.render.events import Events, Sales, Shift, Tour, replay_events
from tokengym.envs.warehouse.render.layout import plot_layout, tour_style
from tokengym.envs.warehouse.render.lease import lease_figure
from tokengym.envs.warehouse.world import WarehouseWorld

_WRAP = 52
_ON_A_SLOT = 6
_IN_A_ROW = 3
_ONE_COLUMN = 8


def render_episode(world: World, record: Record, title: str) -> Figure:
    """Return the picture of a Record of any mode."""
    if isinstance(WarehouseWorld.cast(world).compile(record.task), CompiledLease):
        return lease_figure(world, record, title)
    shown = replay_events(world, record)
    if shown.slots:
        return _days_figure(shown, title)
    if shown.items or shown.bought:
        return _stock_figure(shown, title)
    return _shift_figure(shown.shifts[0], title)


def _shift_figure(shift: Shift, title: str) -> Figure:
    """One shift: the layout on the left; the deadlines and the trips in words on the right."""
    made = figure(13.0, 7.5, f"{title}\n{_tally(shift)}")
    grid = made.add_gridspec(2, 2, width_ratios=(2, 3), height_ratios=(3, 2))
    plan = made.add_subplot(grid[:, 0])
    plot_layout(plan, shift.site.layout, _labels(shift), [tour.stops for tour in shift.tours])
    _deadlines(made.add_subplot(grid[0, 1]), shift, legend_columns=4)
    words = made.add_subplot(grid[1, 1])
    words.axis("off")
    lines = _in_words(shift)
    columns = 1 if len(lines) <= _ONE_COLUMN else 2
    words.legend(handles=lines, loc="upper left", ncols=columns, frameon=False, fontsize=8)
    return made


def _days_figure(shown: Events, title: str) -> Figure:
    """Days of reordering and picking: a column a day, the items below."""
    days = shown.days
    made = figure(max(4.0 * days, 12.0), 13.0, f"{title}\n{_served(shown)}")
    halves = made.subfigures(2, 1, squeeze=False, height_ratios=(3, 2))
    above, below = halves[0][0], halves[1][0]
    panels = above.subplots(2, days, squeeze=False, height_ratios=(3, 2))
    items = {slot: kept.item.sku for slot, kept in zip(shown.slots, shown.items, strict=True)}
    for number, shift in enumerate(shown.shifts):
        plan, times = panels[0][number], panels[1][number]
        labels = items | {slot: f"{items[slot]}\n{label}" for slot, label in _labels(shift).items()}
        plot_layout(plan, shift.site.layout, labels, [tour.stops for tour in shift.tours])
        plan.set_title(f"Day {number + 1}: {_tally(shift)}", fontsize=9)
        _deadlines(times, shift, legend_columns=2 if number == 0 else 0)
    for column in range(len(shown.shifts), days):  # yet to come
        panels[0][column].axis("off")
        panels[1][column].axis("off")
    _inventories(below, shown)
    return made


def _stock_figure(shown: Events, title: str) -> Figure:
    """A stretch of keeping stock: a panel an item."""
    columns, rows = _grid(len(shown.items or shown.bought))
    made = figure(max(5.0 * columns, 8.0), 3.4 * rows + 1.2, f"{title}\n{_served(shown)}")
    _inventories(made, shown)
    return made


def _tally(shift: Shift) -> str:
    """Count what happened, leaving out what did not."""
    counts = {
        "refused": len(shift.refusals),
        "not understood": len(shift.misread),
        "orders not shipped": len(shift.unshipped),
    }
    others = [f", {name}: {count}" for name, count in counts.items() if count]
    return f"trips: {len(shift.tours)}{''.join(others)}"


def _served(shown: Events) -> str:
    sold = sum(sum(days.sold) for days in (*shown.items, *shown.bought))
    lost = sum(sum(days.lost) for days in (*shown.items, *shown.bought))
    counts = {"refused": shown.refused, "not understood": shown.misread}
    others = [f", {name}: {count}" for name, count in counts.items() if count]
    return f"units sold: {sold}, lost: {lost}{''.join(others)}"


def _labels(shift: Shift) -> dict[str, str]:
    """By slot, the orders that ask for it, in lines that fit on it."""
    wanted: dict[str, list[str]] = {}
    for order in shift.orders:
        for slot, units in order.lines:
            wanted.setdefault(slot, []).append(order.id if units == 1 else f"{units}x{order.id}")
    return {slot: textwrap.fill(" ".join(names), _ON_A_SLOT) for slot, names in wanted.items()}


def _in_words(shift: Shift) -> list[Line2D]:
    """Return the legend of trips, refusals and orders left."""
    handles = []
    for number, tour in enumerate(shift.tours):
        colour, line = tour_style(number)
        text = f"trip {number + 1}: t={tour.start} to {tour.finish}, {tour.walked} steps. "
        text += ", ".join(
            f"{name} ${value:.1f} ({late} late)" if late else f"{name} ${value:g}"
            for name, value, late in tour.earned
        )
        handles.append(_handle(text, color=colour, ls=line, lw=2.5))
    for refusal in shift.refusals:
        text = f"refused at t={refusal.time}: {refusal.reason}"
        handles.append(_handle(text, color=RED, marker="x", ls=""))
    if shift.misread:
        times = ", ".join(map(str, shift.misread))
        handles.append(_handle(f"not understood at t={times}", color=GREY, marker="+", ls=""))
    if shift.unshipped:
        text = f"not shipped: {', '.join(shift.unshipped)}"
        handles.append(_handle(text, color=BLACK, marker="", ls=""))
    return handles


def _handle(text: str, *, color: str, marker: str = "", ls: str, lw: float = 1.5) -> Line2D:
    text = textwrap.fill(text, _WRAP).replace("$", r"\$")  # money, not mathematics
    return Line2D([], [], color=color, marker=marker, ls=ls, lw=lw, label=text)


def _deadlines(axes: Axes, shift: Shift, legend_columns: int) -> None:
    """Plot time from left to right: pickers' trips on top, then each order's release and due."""
    names = []
    lanes = _lanes(shift.tours, shift.site.pickers)
    for lane in range(shift.site.pickers):
        names.append(f"picker {lane + 1}" if shift.site.pickers > 1 else "trips")
    for number, (tour, lane) in enumerate(zip(shift.tours, lanes, strict=True)):
        colour, _ = tour_style(number)
        axes.barh(lane, tour.finish - tour.start, 0.7, tour.start, color=colour, ec="white")
        middle = (tour.start + tour.finish) / 2
        axes.text(
            middle, lane, str(number + 1), ha="center", va="center", fontsize=7, color="white"
        )
    if shift.refusals or shift.misread:
        row = len(names)
        names.append("no trip")
        axes.plot([r.time for r in shift.refusals], [row] * len(shift.refusals), "x", color=RED)
        axes.plot(shift.misread, [row] * len(shift.misread), "+", color=GREY)
    _orders(axes, shift, names)
    axes.set_yticks(range(len(names)), names, fontsize=7.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=-1.0)
    axes.set_xlabel("time (steps and units handled)")
    axes.grid(axis="x", color=PALE, lw=0.6)
    axes.set_axisbelow(True)
    if legend_columns:
        axes.legend(
            handles=[
                _handle("from release to due", color=GREY, ls="-", lw=3.0),
                _handle("shipped, in its trip's colour", color=BLACK, marker="o", ls=""),
                _handle("late", color=RED, ls=":", lw=2.0),
                _handle("not shipped", color=RED, marker="X", ls=""),
            ],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            ncols=legend_columns,
            frameon=False,
            fontsize=8,
        )


def _orders(axes: Axes, shift: Shift, names: list[str]) -> None:
    """Add a row an order: when it could be picked, when it was due, when it was shipped."""
    shipped = {
        name: (tour.finish, number)
        for number, tour in enumerate(shift.tours)
        for name, _, _ in tour.earned
    }
    for order in shift.orders:
        row = len(names)
        names.append(rf"{order.id}, \${order.value:g}")
        axes.plot([order.release, order.due], [row, row], color="#c4c4c4", lw=3.0, zorder=1)
        axes.plot([order.due], [row], "|", color=BLACK, ms=9, mew=1.5, zorder=2)
        if order.id not in shipped:
            axes.plot([order.due], [row], "X", color=RED, ms=7, zorder=3)
            continue
        finish, number = shipped[order.id]
        if finish > order.due:
            axes.plot([order.due, finish], [row, row], ":", color=RED, lw=2.0, zorder=2)
        axes.plot([finish], [row], "o", color=tour_style(number)[0], ms=6, zorder=3)


def _lanes(tours: Sequence[Tour], pickers: int) -> list[int]:
    """Give each tour, by start, to a picker who is free then."""
    free = [0] * pickers
    lanes = []
    for tour in tours:
        lane = next(lane for lane, time in enumerate(free) if time <= tour.start)
        free[lane] = tour.finish
        lanes.append(lane)
    return lanes


def _grid(count: int) -> tuple[int, int]:
    """Return columns and rows for `count` panels."""
    columns = 2 if count == 4 else min(count, _IN_A_ROW)
    return columns, -(-count // columns)


def _inventories(made: Figure | SubFigure, shown: Events) -> None:
    """Plot a panel an item: demand as bars, met and lost; stock in the morning; orders."""
    items: Sequence[Sales] = shown.items or shown.bought
    columns, rows = _grid(len(items))
    panels = made.subplots(rows, columns, squeeze=False).flatten().tolist()
    for axes, days in zip(panels, items, strict=False):
        _inventory(axes, days, shown.days)
    for axes in panels[len(items) :]:
        axes.axis("off")
    handles, names = panels[0].get_legend_handles_labels()
    if not items[0].sold:  # bars that are not there have no colour to explain
        return
    made.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)


def _inventory(axes: Axes, days: Sales, last: int) -> None:
    numbers = list(range(1, len(days.on_hand) + 1))
    closed = numbers[: len(days.sold)]
    axes.bar(closed, days.sold, 0.7, color=SKY, label="sold")
    axes.bar(closed, days.lost, 0.7, days.sold, color=RED, hatch="//", ec="white", label="lost")
    axes.plot(
        numbers, days.on_hand, "-o", color=BLACK, ms=4, lw=1.3, label="on hand in the morning"
    )
    placed = [(day, units) for day, units in zip(numbers, days.ordered, strict=True) if units]
    axes.plot(
        [day for day, _ in placed],
        [units for _, units in placed],
        "^",
        color=GREEN,
        ms=8,
        mec=BLUE,
        label="reordered",
    )
    axes.set_title(days.title, fontsize=9)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.4, last + 0.6)
    axes.set_ylim(0.0, max(1.0, axes.get_ylim()[1]))
    axes.set_xlabel("day")
    axes.set_ylabel("units")
    axes.grid(axis="y", color=PALE, lw=0.6)
    axes.set_axisbelow(True)
