"""The picture of order batching: the trips by what they carry and walk."""

from matplotlib.figure import Figure

from tokengym.envs.core.palette import GREEN, GREY, SKY, figure
from tokengym.envs.warehouse.games.batching.session import BatchSession

_MOST_INCHES = 16.0


def picture(session: BatchSession, title: str) -> Figure:
    """Plot a bar a trip, its orders one after the other; orders left are walked for one by one."""
    pool = session.compiled.problem
    batches = [*session.batches, *([order] for order in session.left)]
    tally = f"walked: {-session.objective:g}, refused: {session.refused}"
    # As high for every state of an episode: a frame of a video does not change its size.
    height = min(0.3 * len(pool.orders) + 4.5, _MOST_INCHES)
    made = figure(10.0, height, f"{title}\n{tally}")
    axes = made.add_subplot()
    for row, batch in enumerate(batches):
        start = 0
        for number, order in enumerate(batch):
            units = int(pool.units[order])
            colour = GREY if row >= len(session.batches) else (SKY, GREEN)[number % 2]
            bar = axes.barh(row, units, 0.8, start, color=colour, ec="white")
            axes.bar_label(bar, [f"O{order + 1}"], label_type="center", fontsize=7)
            start += units
    names = [f"trip {row + 1}: {pool.length(batch):g}" for row, batch in enumerate(batches)]
    axes.set_yticks(range(len(batches)), names, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(pool.capacity, color=GREY, ls=":")
    axes.set_xlabel("articles; the dotted line is what a trip carries")
    return made
