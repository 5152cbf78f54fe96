"""The picture of an episode, as a file or an array, and what the worlds draw theirs with.

The colours are those of Okabe and Ito (2008), "Color Universal Design", which colour-blind readers
can distinguish.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, record_replies
from tokengym.envs.core.spec import WorldSpec
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, RED, GREEN, PURPLE, SKY, ORANGE = COLOURS = (
    *("#000000", "#0072B2", "#D55E00", "#009E73"),
    *("#CC79A7", "#56B4E9", "#E69F00"),
)
PALE = "#e3e3e3"

Series = Mapping[str, tuple[str, Sequence[float]]]
"""By label how values are plotted, `bars`, `steps` or a format of Matplotlib, and the values."""

_SUFFIXES = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 110


def can_draw(spec: WorldSpec) -> bool:
    """Return whether a world has pictures and matplotlib, which draws them, is installed."""
    return bool(spec.render) and find_spec("matplotlib") is not None


def require_picture(spec: WorldSpec, path: Path | None = None) -> None:
    """Refuse a world without pictures, or a path where none can be written.

    Raises:
        OptionError: if the world has no picture, matplotlib is not installed, or the path's suffix
            is not that of a picture or its folder missing.
    """
    if not spec.render:
        raise OptionError(f"{spec.id} has no picture")
    if not can_draw(spec):
        raise OptionError("pictures are drawn by matplotlib: pip install matplotlib")
    if path is None:
        return
    if path.suffix.lower() not in _SUFFIXES:
        raise OptionError(f"a picture ends in {', '.join(_SUFFIXES)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise OptionError(f"the folder of a picture must exist, got {str(path)!r}")


def save_picture(world: World, record: PlayedEpisode, path: Path, who: str = "") -> None:
    """Draw an episode and write it to `path`.

    Args:
        world: a world with the options that the episode was played with; an episode under way in
            it is left alone.
        record: the episode. It is played again, and the picture shows the states it goes through.
        path: a `.png` (about 1200 pixels wide), `.svg` or `.pdf`; overwritten if it exists.
        who: who played, for the title.

    Raises:
        OptionError: as `require_picture`.
        TaskError: if the Record is not of this world or was played with other options.
    """
    require_picture(world.spec, path)
    _draw(world, record, who).savefig(path, dpi=_DOTS_PER_INCH)


def picture(
    world: World, task: Task, replies: Sequence[str], *, finish: bool = False
) -> npt.NDArray[np.uint8]:
    """Return the picture of an episode so far, of shape (height, width, 3).

    All pictures of one Task have the same size.

    Args:
        world: a world with the options that the episode is played with; an episode under way in it
            is left alone.
        task: what is played.
        replies: the replies so far, in order; of those that were cut off the lines that had ended.
        finish: whether the episode is over; what is left was then played as empty replies.

    Raises:
        OptionError: as `require_picture`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    drawn = _draw(world, record_replies(world, task, replies, finish=finish))
    drawn.set_dpi(_DOTS_PER_INCH)
    canvas = FigureCanvasAgg(drawn)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _draw(world: World, record: PlayedEpisode, who: str = "") -> "Figure":
    from matplotlib.text import Text

    task, spec = record.task, world.spec
    earned = " and ".join(f"{value:.3f}" for value in record.returns.values())
    so_far = "" if record.turns[-1].done else " so far"
    title = f"{spec.short_name} {task.level}, {task.split} Task {task.index}: "
    title += f"{who or 'the policy'} earned {earned}{so_far}"
    render: Callable[[World, PlayedEpisode, str], Figure] = resolve_name(spec.render)
    drawn = render(world, record, title)
    for text in drawn.findobj(Text):  # replies and names of one's own are no formulas
        shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text.get_text())
        text.set(text=shown, parse_math=False)
    return drawn


def figure(width: float, height: float, title: str) -> "Figure":
    """Return an empty figure that can be rendered anywhere: no window, no global state.

    Args:
        width: in inches.
        height: in inches.
        title: above all panels.
    """
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    made.suptitle(title, fontsize=12)
    return made


def finish(axes: "Axes") -> None:
    """Draw a grid below what a panel shows, and its legend beside it."""
    axes.grid(color=PALE, lw=0.6)
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=9)


def plot_series(
    made: "Figure", name: str, at: Sequence[float], panels: Mapping[str, Series]
) -> None:
    """Plot panels below each other, over the same axis.

    Args:
        made: the figure.
        name: of the horizontal axis.
        at: where on it the values of every series are, from the first; of `steps` n values lie
            between n + 1 of them.
        panels: the series by the name of their vertical axis.
    """
    rows = made.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (label, series) in zip(rows, panels.items(), strict=True):
        for (title, (form, values)), colour in zip(series.items(), cycle(COLOURS[1:])):
            look: dict[str, Any] = {"color": colour, "label": title}
            if form == "steps" and values:
                axes.stairs(values, at[: len(values) + 1], baseline=None, lw=1.8, **look)
            elif form == "bars":
                axes.bar(at[: len(values)], values, 0.7, **look)
            elif values:
                axes.plot(at[: len(values)], values, form, **look)
        axes.set_ylabel(label)
        finish(axes)
    rows[-1].set_xlim(at[0] - 0.5, at[-1] + 0.5)
    rows[-1].set_xlabel(name)


def plot_probabilities(
    axes: "Axes", names: Sequence[str], marks: Mapping[str, tuple[str, str, Sequence[float | None]]]
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
    finish(axes)
