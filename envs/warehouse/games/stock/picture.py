"""The picture of keeping stock: a panel an item, with stock, orders, demand met and lost by day."""

from collections.abc import Sequence
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from tokengym.envs.core.palette import BLACK, BLUE, GREEN, PALE, RED, SKY, figure
from tokengym.envs.warehouse.games.game import Session
from tokengym.envs.warehouse.games.stock.rules import Day, Inventory
from tokengym.envs.warehouse.games.stock.session import StockSession

_IN_A_ROW = 3


def picture(session: StockSession, title: str) -> Figure:
    """Plot a panel an item."""
    panels = {name_of(inventory): inventory.days for inventory in session.inventories}
    return sales_figure(session, title, panels, session.inventories[0].item.model.days)


def sales_figure(session: Session, title: str, panels: dict[str, list[Day]], days: int) -> Figure:
    """Plot a panel for each article, by its name."""
    columns, rows = _grid(len(panels))
    named = f"{title}\n{served(session, panels)}"
    made = figure(max(5.0 * columns, 8.0), 3.4 * rows + 1.2, named)
    plot_sales(made, panels, days)
    return made


def name_of(inventory: Inventory) -> str:
    """Return the name of an item's panel."""
    model = inventory.item.model
    mean = fmean(model.means)
    return (
        f"{inventory.item.sku}: {mean:.3g} a day, arrives after {model.lead} d, room {model.room}"
    )


def served(session: Session, panels: dict[str, list[Day]]) -> str:
    """Count the units sold and lost."""
    days = [day for panel in panels.values() for day in panel]
    return (
        f"units sold: {sum(day.sold for day in days)}, lost: {sum(day.lost for day in days)}, "
        f"refused: {session.refused}, not understood: {session.malformed}"
    )


def plot_sales(made: Figure | SubFigure, panels: dict[str, list[Day]], days: int) -> None:
    """Plot a panel an article: demand as bars, met and lost; stock in the morning; orders."""
    columns, rows = _grid(len(panels))
    axes: Sequence[Axes] = made.subplots(rows, columns, squeeze=False).flatten().tolist()
    for panel, (name, shown) in zip(axes, panels.items(), strict=False):
        _plot_days(panel, name, shown, days)
    for panel in axes[len(panels) :]:
        panel.axis("off")
    handles, names = axes[0].get_legend_handles_labels()
    made.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)


def _grid(count: int) -> tuple[int, int]:
    """Return columns and rows for `count` panels."""
    columns = 2 if count == 4 else min(count, _IN_A_ROW)
    return columns, -(-count // columns)


def _plot_days(axes: Axes, name: str, days: Sequence[Day], last: int) -> None:
    numbers = range(1, len(days) + 1)
    sold = [day.sold for day in days]
    axes.bar(numbers, sold, 0.7, color=SKY, label="sold")
    lost = [day.lost for day in days]
    axes.bar(numbers, lost, 0.7, sold, color=RED, hatch="//", ec="white", label="lost")
    morning = [day.on_hand for day in days]
    axes.plot(numbers, morning, "-o", color=BLACK, ms=4, lw=1.3, label="on hand in the morning")
    placed = [(number, day.ordered) for number, day in enumerate(days, start=1) if day.ordered]
    at, units = zip(*placed, strict=True) if placed else ((), ())
    axes.plot(at, units, "^", color=GREEN, ms=8, mec=BLUE, label="reordered")
    axes.set_title(name, fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0.4, last + 0.6)
    axes.set_ylim(0.0, max(1.0, axes.get_ylim()[1]))
    axes.set_xlabel("day")
    axes.set_ylabel("units")
    axes.grid(axis="y", color=PALE, lw=0.6)
    axes.set_axisbelow(True)
