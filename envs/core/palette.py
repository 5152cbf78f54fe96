"""Colours that colour-blind readers can tell apart, and the figure of a picture.

The colours are those of Okabe and Ito (2008), "Color Universal Design".
"""

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

BLACK, GREY, PALE = "#000000", "#777777", "#e3e3e3"
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, RED, PURPLE, YELLOW = "#0072B2", "#D55E00", "#CC79A7", "#F0E442"

_PADDING = 0.08
"""Inches around a panel."""


def figure(width: float, height: float, title: str) -> Figure:
    """Return an empty figure of `width` by `height` inches with automatic layout.

    It belongs to no window and no global state, so pictures can be rendered anywhere.
    """
    layout = ConstrainedLayoutEngine(h_pad=_PADDING, w_pad=_PADDING)
    made = Figure(figsize=(width, height), layout=layout)
    made.suptitle(title, fontsize=12)
    return made
