"""Colours that colour-blind readers can distinguish, and the figure of a picture.

The colours are those of Okabe and Ito (2008), "Color Universal Design".
"""

from collections.abc import Mapping

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
