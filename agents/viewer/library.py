"""The runs that the viewer was given: found once, named, and never looked up by path again."""

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
    found: list[Path] = []
    for path in paths:
        inside = _search(path.resolve(), _DEPTH) if path.is_dir() else []
        if not inside:
            raise OptionError(f"{path} holds no run and no rollouts")
        found += [one for one in inside if one not in found]
    newest = sorted(found, key=lambda folder: folder.stat().st_mtime, reverse=True)
    return {name: RunView(name, folder) for folder, name in _names(newest).items()}


def _search(folder: Path, depth: int) -> list[Path]:
    """Return the runs in a folder: itself if it is one, else those below it."""
    if is_run(str(folder)) or any(folder.glob("*.jsonl")):
        return [folder]
    if depth == 0:
        return []
    below = sorted(
        one
        for one in folder.iterdir()
        if one.is_dir() and not one.is_symlink() and one.name[0] != "."
    )
    return [run for one in below for run in _search(one, depth - 1)]


def _names(folders: Sequence[Path]) -> dict[Path, str]:
    """Name each folder by the shortest end of its path that no other folder has."""
    shown = {one: one.parent if one.name == "rollouts" else one for one in folders}
    names: dict[Path, str] = {}
    for folder, at in shown.items():
        name = str(at)
        for count in range(1, len(at.parts) + 1):
            name = "/".join(at.parts[-count:])
            if sum(other.parts[-count:] == at.parts[-count:] for other in shown.values()) == 1:
                break
        names[folder] = name
    return names
