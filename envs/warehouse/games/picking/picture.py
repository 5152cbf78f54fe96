"""The picture of a shift: the floor with the tours, deadlines and trips in time, trips in words."""

import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tokengym.envs.core.palette import BLACK, PALE, RED, figure
from tokengym.envs.warehouse.games.picking.floor_picture import plot_layout, tour_style
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.picking.session import PickSession, write_earned

_WRAP = 52
_ON_A_SLOT = 6
_ONE_COLUMN = 8


def picture(session: PickSession, title: str) -> Figure:
    """Plot the floor on the left; deadlines, and the trips in words, on the right."""
    picking = session.picking
    made = figure(13.0, 7.5, f"{title}\n{tally(picking)}, not understood: {session.malformed}")
    grid = made.add_gridspec(2, 2, width_ratios=(2, 3), height_ratios=(3, 2))
    plot_tours(made.add_subplot(grid[:, 0]), picking, {})
    plot_deadlines(made.add_subplot(grid[0, 1]), picking, legend_columns=4)
    words = made.add_subplot(grid[1, 1])
    words.axis("off")
    lines = _in_words(picking)
    columns = 1 if len(lines) <= _ONE_COLUMN else 2
    words.legend(handles=lines, loc="upper left", ncols=columns, frameon=False, fontsize=8)
    return made


def tally(picking: PickingState) -> str:
    """Count the trips, those refused and the orders left."""
    return (
        f"trips: {len(picking.shipments)}, refused: {len(picking.refusals)}, "
        f"orders not shipped: {len(picking.open)}"
    )


def plot_tours(axes: Axes, picking: PickingState, items: dict[str, str]) -> None:
    """Plot the floor with the tours; on its slots their items and the orders that want them."""
    wanted: dict[str, list[str]] = {}
    for order in picking.orders:
        for slot, units in order.lines:
            wanted.setdefault(slot, []).append(order.id if units == 1 else f"{units}x{order.id}")
    labels = {slot: textwrap.fill(" ".join(names), _ON_A_SLOT) for slot, names in wanted.items()}
    for slot, item in items.items():
        labels[slot] = f"{item}\n{labels[slot]}" if slot in labels else item
    tours = [shipment.stops for shipment in picking.shipments]
    plot_layout(axes, picking.site.layout, labels, tours)


def _in_words(picking: PickingState) -> list[Line2D]:
    """Return the legend of clauses, trips, refusals and orders left."""
    handles = [_handle(clause.text, color=BLACK, ls="") for clause in picking.site.clauses]
    for number, trip in enumerate(picking.shipments):
        colour, line = tour_style(number)
        text = f"trip {number + 1}: t={trip.start} to {trip.finish}, {trip.walked} steps. "
        fined = f", fined ${trip.fined:.12g}" if trip.fined else ""
        handles.append(_handle(text + write_earned(trip) + fined, color=colour, ls=line, lw=2.5))
    for time, reason in picking.refusals:
        handles.append(_handle(f"refused at t={time}: {reason}", color=RED, marker="x", ls=""))
    if picking.open:
        handles.append(_handle(f"not shipped: {', '.join(picking.open)}", color=BLACK, ls=""))
    return handles


def _handle(text: str, *, color: str, marker: str = "", ls: str, lw: float = 1.5) -> Line2D:
    text = textwrap.fill(text, _WRAP).replace("$", r"\$")  # money, not mathematics
    return Line2D([], [], color=color, marker=marker, ls=ls, lw=lw, label=text)


def plot_deadlines(axes: Axes, picking: PickingState, legend_columns: int) -> None:
    """Plot time from left to right: trips on top, then each order's release and due."""
    names = ["trips"]
    shipped = dict[str, tuple[int, str]]()
    for number, trip in enumerate(picking.shipments):
        colour, _ = tour_style(number)
        shipped |= {name: (trip.finish, colour) for name, *_ in trip.earned}
        bar = axes.barh(0, trip.finish - trip.start, 0.7, trip.start, color=colour, ec="white")
        axes.bar_label(bar, [str(number + 1)], label_type="center", fontsize=7, color="white")
    if picking.refusals:
        times = [time for time, _ in picking.refusals]
        axes.plot(times, [len(names)] * len(times), "x", color=RED)
        names.append("refused")
    for row, order in enumerate(picking.orders, start=len(names)):
        names.append(rf"{order.id}, \${order.value:g}")
        span, label = [order.release, order.due], "from release to due"
        axes.plot(span, [row, row], color="#c4c4c4", lw=3.0, zorder=1, label=label)
        axes.plot([order.due], [row], "|", color=BLACK, ms=9, mew=1.5, zorder=2)
        if order.id not in shipped:
            axes.plot([order.due], [row], "X", color=RED, ms=7, zorder=3, label="not shipped")
            continue
        finish, colour = shipped[order.id]
        if finish > order.due:
            axes.plot([order.due, finish], [row, row], ":", color=RED, lw=2, zorder=2, label="late")
        label = "shipped, in its trip's colour"
        axes.plot([finish], [row], "o", color=colour, ms=6, zorder=3, label=label)
    axes.set_yticks(range(len(names)), names, fontsize=7.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(left=-1.0)
    axes.set_xlabel("time (steps and units handled)")
    axes.grid(axis="x", color=PALE, lw=0.6)
    axes.set_axisbelow(True)
    if legend_columns:
        handles, labels = axes.get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        axes.legend(
            shown.values(),
            shown.keys(),
            loc="upper center",
            bbox_to_anchor=(0.5, -0.2),
            ncols=legend_columns,
            frameon=False,
            fontsize=8,
        )
