"""The picture of an episode: a floor with its trips, stock and sales by day, or bays and prices."""

from collections.abc import Mapping
from itertools import pairwise
from math import nan

from matplotlib.figure import Figure

from tokengym.envs.core.play import PlayedEpisode, replay
from tokengym.envs.core.rendering import BLACK, PALE, Series, figure, finish, plot_series
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.games.leasing.session import LeaseSession
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.picking.session import PickSession, write_earned
from tokengym.envs.warehouse.games.stock.session import StockSession
from tokengym.envs.warehouse.layout import AisleLayout, Cell, Layout
from tokengym.envs.warehouse.world import WarehouseWorld


def render_episode(world: World, record: PlayedEpisode, title: str) -> Figure:
    """Return the picture of a Record of any game."""
    world = WarehouseWorld.cast(world)
    session = world.compile(record.task).open()
    for step in replay(world, record):
        session = step.after.session
    counts = f"refused: {session.refused}, not understood: {session.malformed}"
    made = figure(11.0, 7.0, f"{title}\n{counts}")
    if isinstance(session, PickSession):
        _plot_floor(made, session.picking)
    elif isinstance(session, StockSession):
        days = range(1, session.inventories[0].item.model.days + 1)
        plot_series(made, "day", days, _sales(session))
    elif isinstance(session, LeaseSession):
        months = range(1, session.compiled.problem.model.months + 1)
        plot_series(made, "month", months, _quotes(session))
    return made


def _sales(session: StockSession) -> Mapping[str, Series]:
    return {
        f"{one.item.sku} (units)": {
            "lost": ("bars", [day.sold + day.lost for day in one.days]),
            "sold": ("bars", [day.sold for day in one.days]),
            "in the morning": ("-o", [day.on_hand for day in one.days]),
            "ordered": ("^", [day.ordered for day in one.days]),
        }
        for one in session.inventories
    }


def _quotes(session: LeaseSession) -> Mapping[str, Series]:
    lease = session.compiled.problem
    months = list(zip(lease.kinds, session.quotes, strict=False))
    bays = lease.model.bays
    return {
        f"bays, of {bays}": {
            "newly leased": ("bars", [at + one.bays * new for one, (at, _, new) in months]),
            "leased before": ("bars", [at for at, _, _ in session.quotes]),
        },
        r"\$ a bay and month": {
            "highest limit": ("_", [kind.high for kind, _ in months]),
            "lowest limit": ("_", [kind.low for kind, _ in months]),
            "quoted": ("o", [price for _, price, _ in session.quotes]),
            "signed": ("*", [price if new else nan for _, price, new in session.quotes]),
        },
    }


def _plot_floor(made: Figure, picking: PickingState) -> None:
    """Plot the slots with the orders that want them, and the trips, which the legend words."""
    axes, layout = made.subplots(), picking.site.layout
    cells, orders = {cell.name: cell for cell in layout.slots()}, dict[str, str]()
    axes.plot(*zip(*cells.values(), strict=True), "s", color=PALE, ms=15)
    for order in picking.orders:
        for slot, _ in order.lines:
            orders[slot] = f"{orders[slot]}\n{order.id}" if slot in orders else order.id
    for slot, names in orders.items():
        axes.text(*cells[slot], f"  {names}", fontsize=7, va="center")
    for number, trip in enumerate(picking.shipments):
        places = [layout.depot, *(cells[stop] for stop in trip.stops), layout.depot]
        path = [(cell.aisle + 0.03 * number, cell.row) for cell in _corners(layout, places)]
        label = f"t={trip.start} to {trip.finish}: {write_earned(trip)}".replace("$", r"\$")
        axes.plot(*zip(*path, strict=True), "-o", ms=3, label=label)
    axes.plot(*layout.depot, "*", color=BLACK, ms=14, label="depot")
    axes.plot([], [], " ", label=f"not shipped: {', '.join(picking.open) or 'none'}")
    axes.set_xlabel("aisle" if isinstance(layout, AisleLayout) else "column")
    axes.set_ylabel("row")
    finish(axes)


def _corners(layout: Layout, places: list[Cell]) -> list[Cell]:
    """Return the corners of a tour: from aisle to aisle by the nearer cross-aisle."""
    path = places[:1]
    for here, there in pairwise(places):
        if isinstance(layout, AisleLayout) and here.aisle != there.aisle:
            cross = 0 if here.row + there.row <= layout.rows + 1 else layout.rows + 1
            path += [Cell(here.aisle, cross), Cell(there.aisle, cross)]
        path.append(there)
    return path
