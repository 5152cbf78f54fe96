"""`save_picture`: an episode as a picture in a file, for the worlds that have one."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.rollout import Record
from tokengym.envs.core.world import World
from tokengym.envs.registry import load, spec, specs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SUFFIXES = (".png", ".svg", ".pdf")
_DOTS_PER_INCH = 110


def has_picture(world_id: str) -> bool:
    """Return whether episodes of a world, named by id or short name, can be drawn.

    Raises:
        UnknownWorldError: if there is no such world.
    """
    return bool(spec(world_id).render)


def check_picture(world_id: str, path: Path) -> None:
    """Hold that a picture of a world's episode can be written to `path`.

    Raises:
        OptionError: if the world has no picture, the format is not known or the folder missing.
    """
    if not has_picture(world_id):
        drawn = sorted(row.id for row in specs().values() if row.render)
        raise OptionError(f"{spec(world_id).id} has no picture; drawn are {drawn}")
    if path.suffix.lower() not in _SUFFIXES:
        raise OptionError(f"a picture ends in {', '.join(_SUFFIXES)}, got {str(path)!r}")
    if not path.parent.is_dir():
        raise OptionError(f"the folder of a picture must exist, got {str(path)!r}")


def save_picture(world: World, record: Record, path: Path, who: str = "") -> None:
    """Draw an episode and write it to `path`.

    Args:
        world: a world with the options that the episode was played with; an episode under way in
            it is left alone.
        record: the episode. It is played again, and the picture shows the states it goes through.
        path: a `.png` (about 1200 pixels wide), `.svg` or `.pdf`; overwritten if it exists.
        who: who played, for the title.

    Raises:
        OptionError: as `check_picture`.
        TaskError: if the Record is not of this world or was played with other options.
    """
    check_picture(world.spec.id, path)
    draw: Callable[[World, Record, str], Figure] = load(world.spec.render)
    draw(world, record, _title(record, who)).savefig(path, dpi=_DOTS_PER_INCH)


def _title(record: Record, who: str) -> str:
    task = record.task
    name = f"{spec(task.world).short_name} {task.level}, {task.split} Task {task.index}"
    earned = " and ".join(f"{value:.3f}" for value in record.returns.values())
    return f"{name}: {who or 'the policy'} earned {earned}"
