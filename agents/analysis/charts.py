"""The common style of charts: small enough for a phone, legible side by side on a wide screen."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, PALE_BLUE, RED, GREEN, GREY = "#1f5f99", "#9bb7d4", "#c0392b", "#2a8a57", "#8a8f98"
_WIDTH, _HEIGHT = 5.2, 3.4
_APART = 0.055
"""Least distance of two labels, as a share of the axis."""


def chart(
    title: str, xlabel: str, ylabel: str, *, height: float = _HEIGHT
) -> "tuple[Figure, Axes]":
    """Return an empty chart of one panel.

    Args:
        title: what it shows.
        xlabel: name of the horizontal axis.
        ylabel: name of the vertical axis.
        height: in inches.
    """
    from matplotlib.figure import Figure

    # Fixed margins, with room for names at the right: a layout engine would take twice as long.
    figure = Figure(figsize=(_WIDTH, height))
    margins = {"left": 0.62 / _WIDTH, "right": 1.0 - 0.72 / _WIDTH}
    figure.subplots_adjust(**margins, bottom=0.48 / height, top=1.0 - 0.38 / height)
    axes = figure.subplots()
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    for axis, name in ((axes.xaxis, xlabel), (axes.yaxis, ylabel)):
        axis.set_label_text(name, fontsize=9)
    axes.tick_params(labelsize=8, color="#999999")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#999999")
    axes.grid(color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def legend(axes: "Axes") -> None:
    """Name the lines above the panel's top right corner."""
    if axes.get_legend_handles_labels()[0]:
        spacing: dict[str, Any] = {"borderaxespad": 0.1, "handlelength": 1.2, "columnspacing": 1.0}
        place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "ncols": 3}
        axes.legend(**place, **spacing, fontsize=8, frameon=False)


def label_lines(axes: "Axes", lines: Sequence[tuple[str, float]]) -> None:
    """Draw horizontal lines and label them right of the panel, without overlaps.

    Args:
        axes: a panel with its final limits.
        lines: names and levels.
    """
    low, high = axes.get_ylim()
    place = -1.0
    for name, level in sorted(lines, key=lambda line: line[1]):
        axes.axhline(level, ls="--", lw=0.9, color=GREY)
        place = max((level - low) / (high - low), place + _APART)
        style: dict[str, Any] = {
            "fontsize": 8,
            "color": "#555555",
            "va": "center",
            "annotation_clip": False,
        }
        axes.annotate(name, (1.01, place), xycoords="axes fraction", **style)
