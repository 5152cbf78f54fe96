"""Steps whose results are kept on disk, so that an interrupted build continues where it stopped.

The folder holds what all results depend on; results made of other things are deleted. A step's
folder appears only once it is complete.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokengym.atomic_write import write_whole
from tokengym.envs.core.task import canonical_json

_IDENTITY, _NOTES = "identity.json", "notes.json"

Progress = Callable[[str, int, int], None]
"""Called with a stage, how many of its steps are done, and how many there are."""
Make = Callable[[Path], Mapping[str, Any] | None]
"""Writes columns into a folder and returns notes as plain JSON; it pickles for an executor."""


def ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""


class Steps:
    """The steps of one build.

    Args:
        folder: where the results lie.
        identity: all that they depend on, as plain JSON.
        executor: where to run steps; here, one after another, if `None`.
        progress: called after each step.
    """

    def __init__(
        self, folder: Path, identity: Any, executor: Executor | None, progress: Progress
    ) -> None:
        self.folder, self.executor, self.progress = folder, executor, progress
        known, text = folder / _IDENTITY, canonical_json(identity)
        if not known.exists() or known.read_text(encoding="utf-8") != text:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_whole(known, text.encode())

    def run(self, stage: str, makes: Mapping[str, Make]) -> list[Path]:
        """Run the steps of a stage that are not done yet, and return the folders of all.

        Args:
            stage: their name together, for `progress`.
            makes: steps by the name of the folder; they are independent of each other.
        """
        folders = [self.folder / name for name in makes]
        run = map if self.executor is None else self.executor.map
        self.progress(stage, 0, len(folders))
        for done, _ in enumerate(run(_make, makes.values(), folders), start=1):
            self.progress(stage, done, len(folders))
        return folders

    def run_one(self, stage: str, name: str, make: Callable[..., Any], *arguments: Any) -> Path:
        """Run one step here."""
        folder = self.folder / name
        self.progress(stage, 0, 1)
        _make(partial(make, *arguments), folder)
        self.progress(stage, 1, 1)
        return folder


def read_notes(folder: Path) -> dict[str, Any]:
    """Return what a step noted."""
    notes: dict[str, Any] = json.loads((folder / _NOTES).read_text(encoding="utf-8"))
    return notes


def save_columns(folder: Path, **columns: npt.ArrayLike) -> None:
    """Write the columns of a step, a file each."""
    for name, column in columns.items():
        np.save(folder / f"{name}.npy", np.asarray(column))


def load_columns(folder: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Map columns of a step into memory."""
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in names]


def _make(make: Make, folder: Path) -> None:
    if folder.exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    notes = make(part)
    (part / _NOTES).write_text(json.dumps(notes or {}), encoding="utf-8")
    part.rename(folder)
