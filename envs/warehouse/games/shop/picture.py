"""The picture of a shop: a column a day with its tours and deadlines, the items below."""

from matplotlib.figure import Figure

from tokengym.envs.core.palette import figure
from tokengym.envs.warehouse.games.picking.picture import plot_deadlines, plot_tours, tally
from tokengym.envs.warehouse.games.shop.session import ShopSession
from tokengym.envs.warehouse.games.stock.picture import name_of, plot_sales, served


def picture(session: ShopSession, title: str) -> Figure:
    """Plot the days, and the items by day."""
    shop = session.compiled.problem.shop
    days = len(shop.books)
    panels = {name_of(inventory): inventory.days for inventory in session.days.inventories}
    made = figure(max(4.0 * days, 12.0), 13.0, f"{title}\n{served(session, panels)}")
    halves = made.subfigures(2, 1, squeeze=False, height_ratios=(3, 2))
    above, below = halves[0][0], halves[1][0]
    axes = above.subplots(2, days, squeeze=False, height_ratios=(3, 2))
    items = {slot: item.sku for slot, item in zip(shop.slots, shop.items, strict=True)}
    for number, picking in enumerate(session.shifts):
        plot_tours(axes[0][number], picking, items)
        axes[0][number].set_title(f"Day {number + 1}\n{tally(picking)}", fontsize=9)
        plot_deadlines(axes[1][number], picking, legend_columns=2 if number == 0 else 0)
    for column in range(len(session.shifts), days):  # yet to come
        axes[0][column].axis("off")
        axes[1][column].axis("off")
    plot_sales(below, panels, days)
    return made
