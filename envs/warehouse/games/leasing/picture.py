"""The picture of leasing: the bays taken by contract, and the price quoted every month."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tokengym.envs.core.palette import BLACK, GREEN, PALE, RED, SKY, figure
from tokengym.envs.warehouse.games.leasing.session import LeaseSession


def picture(session: LeaseSession, title: str) -> Figure:
    """Plot occupancy above, and prices with the range of the customer's limits below."""
    lease, metrics = session.compiled.problem, session.metrics()
    months = np.arange(len(session.quotes)) + 1
    kinds = lease.kinds[: len(months)]
    made = figure(
        10.0,
        6.0,
        f"{title}\nearned ${metrics['earned']:.0f}, {metrics['occupancy']:.0%} of the bays leased",
    )
    above, below = made.subplots(2, 1, sharex=True)
    before, prices, signed = np.array(session.quotes, dtype=np.int64).reshape(-1, 3).T
    new = signed * [kind.bays for kind in kinds]
    above.bar(months, before, 0.7, color=SKY, label="leased before")
    above.bar(months, new, 0.7, before, color=GREEN, label="new contract")
    above.axhline(lease.model.bays, color=BLACK, lw=1.0, ls="--", label="all bays")
    above.set_ylabel("bays")
    low, high = [kind.low for kind in kinds], [kind.high for kind in kinds]
    below.vlines(months, low, high, color=PALE, lw=8, label="range of limits")
    for chosen, color, label in ((1, GREEN, "signed"), (0, RED, "not signed")):
        shown = (signed == chosen) & (prices > 0)
        below.plot(months[shown], prices[shown], "o", color=color, label=label)
    below.set_ylim(0.0, 1.15 * max(kind.high for kind in lease.model.kinds))
    for month, kind in zip(months, kinds, strict=True):
        below.annotate(
            kind.name, (month, kind.high), (0, 2), textcoords="offset points", ha="center"
        )
    below.set_ylabel("$ a bay and month")
    below.set_xlabel("month")
    for axes in (above, below):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return made
