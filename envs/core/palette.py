"""Colours that colour-blind readers can distinguish, and what pictures are made of.

The colours are those of Okabe and Ito (2008), "Color Universal Design".
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLACK, GREY, PALE = "#000000", "#777777", "#e3e3e3"
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, YELLOW = "#0072B2", "#D55E00", "#CC79A7", "#F0E442"

_PADDING = 0.08
"""Inches around a panel."""


def figure(
    width: float, height: float, title: str, *, margins: Mapping[str, float] | None = None
) -> Figure:
    """Return an empty figure that can be rendered anywhere: no window, no global state.

    Args:
        width: in inches.
        height: in inches.
        title: above all panels.
        margins: inches at the `left`, `right`, `top` and `bottom` of the panels. Without them they
            are fitted to what the panels hold, which takes as long as rendering them once more.
    """
    if margins is None:
        fitted = ConstrainedLayoutEngine(h_pad=_PADDING, w_pad=_PADDING)
        made = Figure(figsize=(width, height), layout=fitted)
        made.suptitle(title, fontsize=12)
        return made
    made = Figure(figsize=(width, height))
    made.subplots_adjust(
        left=margins["left"] / width,
        right=1.0 - margins["right"] / width,
        bottom=margins["bottom"] / height,
        top=1.0 - margins["top"] / height,
    )
    made.suptitle(title, fontsize=12, y=1.0 - _PADDING / height, va="top")
    return made


def plot_probabilities(
    axes: Axes, names: Sequence[str], marks: Mapping[str, tuple[str, str, Sequence[float | None]]]
) -> None:
    """Plot probabilities of several events, a line for each, from 0 at the left to 1.

    Args:
        axes: where to.
        names: of the events, from top to bottom.
        marks: by what they are called in the legend, a marker, a colour, and the probability of
            each event, `None` where there is none; empty where nobody has stated any.
    """
    for label, (marker, colour, values) in marks.items():
        known = [(value, line) for line, value in enumerate(values) if value is not None]
        at = tuple(zip(*known, strict=True)) or ((), ())
        size = 16 if marker == "|" else 7
        axes.plot(*at, marker, color=colour, ms=size, mew=2.5, label=label, clip_on=False)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.01, 1.01)
    axes.set_xlabel("probability")
    axes.grid(color=PALE)
    axes.set_axisbelow(True)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)
