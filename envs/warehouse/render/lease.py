"""The picture of a lease: the bays taken by contract, and the price quoted every month."""

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tokengym.envs.core.palette import BLACK, GREEN, PALE, RED, SKY, figure
from tokengym.envs.core.replay import replay
from tokengym.envs.core.rollout import Record
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.grammar import read_quote
from tokengym.envs.warehouse.lease_session import CompiledLease, LeaseSession
from tokengym.envs.warehouse.world import WarehouseWorld


def lease_figure(world: World, record: Record, title: str) -> Figure:
    """Occupancy above, prices with the range of the customer's limits below."""
    compiled = world.compile(record.task)
    assert isinstance(compiled, CompiledLease)
    model = compiled.model
    taken, prices, signed, ranges = [], [], [], []
    metrics = {"earned": 0.0, "occupancy": 0.0}
    for step in replay(WarehouseWorld.cast(world), record):
        session, after = step.before.session, step.after.session
        assert isinstance(session, LeaseSession)
        assert isinstance(after, LeaseSession)
        kind, month = session.customer, session.turns
        metrics = after.metrics()
        signs = month in after.prices
        taken.append((sum(session.state), kind.bays if signs else 0))
        prices.append(read_quote(step.reply, complete=True) or 0)
        signed.append(signs)
        ranges.append((kind.low, kind.high, kind.name))
    months = list(range(1, len(taken) + 1))
    made = figure(
        10.0,
        6.0,
        f"{title}\nearned ${metrics['earned']:.0f}, {metrics['occupancy']:.0%} of the bays leased",
    )
    above, below = made.subplots(2, 1, sharex=True)
    before = [old for old, _ in taken]
    above.bar(months, before, 0.7, color=SKY, label="leased before")
    above.bar(months, [new for _, new in taken], 0.7, before, color=GREEN, label="new contract")
    above.axhline(model.bays, color=BLACK, lw=1.0, ls="--", label="all bays")
    above.set_ylabel("bays")
    below.vlines(
        months,
        [low for low, *_ in ranges],
        [high for _, high, _ in ranges],
        color=PALE,
        lw=8,
        label="range of limits",
    )
    for chosen, color, label in ((True, GREEN, "signed"), (False, RED, "not signed")):
        shown = [
            (month, price)
            for month, price, sold in zip(months, prices, signed, strict=True)
            if price and sold is chosen
        ]
        below.plot([m for m, _ in shown], [p for _, p in shown], "o", color=color, label=label)
    below.set_ylim(0.0, 1.15 * max(kind.high for kind in model.kinds))
    for month, (_, high, name) in zip(months, ranges, strict=True):
        below.annotate(name, (month, high), (0, 2), textcoords="offset points", ha="center")
    below.set_ylabel("$ a bay and month")
    below.set_xlabel("month")
    for axes in (above, below):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return made
