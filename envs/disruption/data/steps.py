"""Steps whose results are kept on disk, so that an interrupted build continues where it stopped.

A step's folder is named by a hash of everything its result depends on, appears only once it is
complete, and holds the hash of each of its files: what is found intact is not done again.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.task import canonical_json
from tokengym.envs.intake.files import sha256

FORMAT = 7
"""Goes up whenever a step gives another result from the same arguments."""

_DONE = "done.json"

Progress = Callable[[str, int, int], None]
"""Called with a stage, how many of its steps are done, and how many there are."""


def ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """Report nothing."""


class Done(NamedTuple):
    """The result of a step.

    Attributes:
        path: its folder.
        files: SHA-256 of each file by name.
        notes: what the step returned.
    """

    path: Path
    files: Mapping[str, str]
    notes: Any

    @property
    def identity(self) -> str:
        """What its result depends on, for the hash of later steps."""
        return self.path.name


class Step(NamedTuple):
    """One piece of work.

    Attributes:
        name: its folder's name up to the hash; letters, digits, `-`.
        make: called with the folder it writes files into, without subfolders; returns notes as
            plain JSON. Its result depends on its arguments alone: plain JSON, or what has an
            `identity` in plain JSON. It pickles where an executor runs it.
    """

    name: str
    make: "partial[Any]"

    @property
    def folder(self) -> str:
        """Name of the folder of its result."""
        identity = [FORMAT, self.make.func.__name__, _identify(self.make.args)]
        digest = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
        return f"{self.name}-{digest[:16]}"


def _identify(value: Any) -> Any:
    if hasattr(value, "identity"):
        return value.identity
    return [_identify(item) for item in value] if isinstance(value, list | tuple) else value


def run_steps(
    folder: Path, stage: str, steps: Sequence[Step], executor: Executor | None, progress: Progress
) -> list[Done]:
    """Run the steps that are not done yet, and return every step's result in their order.

    Args:
        folder: where the results lie.
        stage: name of all these steps together, for `progress`.
        steps: what to do; none needs the result of another one.
        executor: where to run them; here, one after another, if `None`.
        progress: called after each step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    progress(stage, 0, len(steps))
    if executor is None:
        results = []
        for count, step in enumerate(steps, start=1):
            results.append(_run(folder, step))
            progress(stage, count, len(steps))
        return results
    futures = [executor.submit(_run, folder, step) for step in steps]
    try:
        for count, future in enumerate(as_completed(futures), start=1):
            future.result()  # the first that failed raises
            progress(stage, count, len(steps))
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [future.result() for future in futures]


def _run(folder: Path, step: Step) -> Done:
    """Return the result of a step, running it if there is none or it was damaged."""
    path = folder / step.folder
    found = _read_intact(path)
    if found is not None:
        return found
    part = path.with_name(f"{path.name}.part")
    for old in (path, part):
        shutil.rmtree(old, ignore_errors=True)
    part.mkdir()
    notes = step.make(part)
    files = {entry.name: sha256(entry) for entry in sorted(part.iterdir())}
    (part / _DONE).write_text(canonical_json({"files": files, "notes": notes}), encoding="utf-8")
    part.replace(path)
    return Done(path, files, notes)


def _read_intact(path: Path) -> Done | None:
    """The result in a folder, or `None` if a file of it is missing or has changed."""
    try:
        record = json.loads((path / _DONE).read_text(encoding="utf-8"))
        done = Done(path, record["files"], record["notes"])
        intact = all(sha256(path / name) == digest for name, digest in done.files.items())
    except (OSError, DataError, ValueError, KeyError, TypeError):
        return None
    return done if intact else None
