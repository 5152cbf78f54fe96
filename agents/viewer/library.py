"""Finding the runs below the folders that a user names; pages then ask for runs by name only."""

import json
import re
import tempfile
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokengym.agents.certify.sources.records import RecordedRollouts
from tokengym.agents.rollouts import (
    RolloutLog,
    RolloutOrigin,
    RolloutRecord,
    TurnRecord,
    evaluation_segment,
)
from tokengym.agents.training.folder.run import is_run
from tokengym.agents.viewer.reports import report_file
from tokengym.agents.viewer.run_view import RunView
from tokengym.envs.core.errors import DataError, OptionError

_UNNAMED = re.compile(r"\W+")
_DEPTH = 3
"""Folders below the given one that are searched for runs."""


def open_runs(paths: Sequence[Path]) -> Mapping[str, RunView]:
    """Return the runs in some folders by name, the newest first.

    Args:
        paths: folders of runs, sweeps, evaluations or certificates, folders with files of rollouts,
            or folders that hold such folders; files of `tokengym ties --json`; or what
            `RecordedRollouts` reads: files and folders of rollouts of other programs.

    Raises:
        OptionError: if a folder holds none of these.
    """
    folders: dict[Path, None] = {}
    others = {}
    for path in paths:
        inside = _search(path.resolve(), _DEPTH) if path.is_dir() else []
        if not inside:
            saved = report_file(path)
            others[path.name] = RunView(path.name, path) if saved else _imported(path)
        folders |= dict.fromkeys(inside)
    for folder in folders:
        for file in (*folder.iterdir(), *folder.glob("rollouts/*")):
            if file.exists() and not (file.is_file() or file.is_dir()):
                raise OptionError(f"{file} is neither a file nor a folder")  # reading may not end
    newest = sorted(folders, key=lambda folder: folder.stat().st_mtime, reverse=True)
    return {name: RunView(name, folder) for folder, name in _names(newest).items()} | others


def _imported(path: Path) -> RunView:
    """Return rollouts that another program recorded, as ours, in a folder that goes with the view.

    Raises:
        OptionError: if there are none.
    """
    try:
        rollouts = RecordedRollouts(path).rollouts
    except (DataError, OSError) as error:
        raise OptionError(f"{path} holds no run and no rollouts: {error}") from error
    groups: dict[tuple[str, str], int] = {}
    members: Counter[int] = Counter()
    kept = tempfile.TemporaryDirectory()
    of_split: dict[str, list[RolloutRecord]] = {}
    for rollout in rollouts:
        group = groups.setdefault((rollout.split, rollout.group), len(groups))
        origin = RolloutOrigin("evaluation", group=group, member=members[group])
        members[group] += 1
        # A value that is no number is shown as the reason why the rollout ended.
        said = rollout.reward if isinstance(rollout.reward, str) else ""
        earned = 0.0 if isinstance(rollout.reward, str) else rollout.reward
        reply = TurnRecord("policy", rollout.prompt, rollout.reply, reward=earned)
        what = (path.name, "", rollout.split, group, rollout.group, "policy", (reply,), said)
        of_split.setdefault(_UNNAMED.sub("_", rollout.split) or "all", []).append(
            RolloutRecord(origin, *what, total=earned)
        )
    for split, records in of_split.items():
        RolloutLog(Path(kept.name)).append(evaluation_segment(split), records)
    view = RunView(path.name, Path(kept.name))
    weakref.finalize(view, kept.cleanup)
    return view


def _search(folder: Path, depth: int) -> list[Path]:
    """Return the runs in a folder: itself if it is one, else those below it; of a sweep both."""
    report = report_file(folder)
    found = [folder] if report or is_run(folder) or _has_rollouts(folder) else []
    if depth == 0 or (found and not (report and report.name == "sweep.json")):
        return found
    below = sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and not path.is_symlink() and path.name[0] != "."
    )
    return [*found, *(run for path in below for run in _search(path, depth - 1))]


def _has_rollouts(folder: Path) -> bool:
    return any(map(_is_ours, filter(Path.is_file, folder.glob("*.jsonl"))))


def _is_ours(path: Path) -> bool:
    """Return whether a file begins with a rollout in our format."""
    with path.open("rb") as file:
        try:
            first = json.loads(file.readline())
        except ValueError:
            return False
    return isinstance(first, dict) and {"schema", "turns"} <= first.keys()


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
