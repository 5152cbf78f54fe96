"""The picture of an episode, as a file or an array, for the worlds that have one."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import PlayedEpisode, record_replies
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import import_object, spec, specs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 110


def has_picture(world_id: str) -> bool:
    """Return whether a world, named by id or short name, has pictures of its episodes.

    Raises:
        UnknownWorldError: if there is no such world.
    """
    return bool(spec(world_id).render)


def can_draw(world_id: str) -> bool:
    """Return whether a world has pictures and matplotlib, which draws them, is installed.

    Raises:
        UnknownWorldError: if there is no such world.
    """
    return has_picture(world_id) and find_spec("matplotlib") is not None


def require_picture(world_id: str, path: Path | None = None) -> None:
    """Refuse a world without pictures, or a path where none can be written.

    Raises:
        OptionError: if the world has no picture, matplotlib is not installed, or the path's suffix
            is not that of a picture or its folder missing.
    """
    if not has_picture(world_id):
        worlds = sorted(row.id for row in specs().values() if row.render)
        raise OptionError(f"{spec(world_id).id} has no picture; these worlds have one: {worlds}")
    if not can_draw(world_id):
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
    require_picture(world.spec.id, path)
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
        replies: the replies so far, in order; empty for those that were cut off.
        finish: whether the episode is over; what is left was then played as empty replies.

    Raises:
        OptionError: as `require_picture`.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = _draw(world, record_replies(world, task, replies, finish=finish))
    figure.set_dpi(_DOTS_PER_INCH)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _draw(world: World, record: PlayedEpisode, who: str = "") -> "Figure":
    render: Callable[[World, PlayedEpisode, str], Figure] = import_object(world.spec.render)
    return render(world, record, _title(record, who))


def _title(record: PlayedEpisode, who: str) -> str:
    task = record.task
    name = f"{spec(task.world).short_name} {task.level}, {task.split} Task {task.index}"
    earned = " and ".join(f"{value:.3f}" for value in record.returns.values())
    so_far = "" if record.turns[-1].done else " so far"
    return f"{name}: {who or 'the policy'} earned {earned}{so_far}"
