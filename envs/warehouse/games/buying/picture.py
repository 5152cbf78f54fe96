"""The picture of buying: stock, orders, demand met and lost by period."""

from matplotlib.figure import Figure

from tokengym.envs.warehouse.games.buying.rules import SKU
from tokengym.envs.warehouse.games.buying.session import BuyingSession
from tokengym.envs.warehouse.games.stock.picture import sales_figure


def picture(session: BuyingSession, title: str) -> Figure:
    """Plot the periods."""
    terms = session.supply.terms
    name = f"{SKU}: ${terms.profit:g} a unit sold, promised after {terms.promised} periods"
    panels = {name.replace("$", r"\$"): session.supply.days}
    return sales_figure(session, title, panels, terms.periods)
