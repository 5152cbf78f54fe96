"""Finding the runs below the folders that a user names; pages then ask for runs by name only."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tokengym.agents.training.folder.run import is_run
from tokengym.agents.viewer.run_view import RunView
from tokengym.envs.core.errors import OptionError

_DEPTH = 3
"""Folders below the given one that are searched for runs."""


def open_runs(paths: Sequence[Path]) -> Mapping[str, RunView]:
    """Return the runs in some folders by name, the newest first.

    Args:
        paths: run folders, folders with files of rollouts, or folders that hold such folders.

    Raises:
        OptionError: if a folder holds neither.
    """
    folders: dict[Path, None] = {}
    for path in paths:
        inside = _search(path.resolve(), _DEPTH) if path.is_dir() else []
        if not inside:
            raise OptionError(f"{path} holds no run and no rollouts")
        folders |= dict.fromkeys(inside)
    newest = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    return {name: RunView(name, folder) for folder, name in _names(newest).items()}


def _search(folder: Path, depth: int) -> list[Path]:
    """Return the runs in a folder: itself if it is one, else those below it."""
    if is_run(str(folder)) or any(folder.glob("*.jsonl")):
        return [folder]
    if depth == 0:
        return []
    below = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name[0] != "."
    )
    return [run for path in below for run in _search(path, depth - 1)]


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Name each folder by the shortest end of its path that no other folder has."""
    named = {path: path.parent if path.name == "rollouts" else path for path in folders}
    names: dict[Path, str] = {}
    for folder, at in named.items():
        name = str(at)
        for count in range(1, len(at.parts) + 1):
            name = "/".join(at.parts[-count:])
            if sum(other.parts[-count:] == at.parts[-count:] for other in named.values()) == 1:
                break
        names[folder] = name
    return names
