"""What a run folder records of its checkpoints, kept to those that a run can go on from."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tinker_cookbook.checkpoint_utils import load_checkpoints_file

_RECORDS = "checkpoints.jsonl"


def forget_checkpoints_from(folder: Path, step: int) -> None:
    """Forget checkpoints taken in a collapsed state, so that a resume starts from the last good."""
    _keep(folder, lambda row: row["batch"] <= step)


def forget_deleted_checkpoints(folder: Path) -> None:
    """Forget the rolling checkpoints that the trainer deleted when it saved its final one.

    The last of them may be recorded after the final one, and a resume takes the last record.
    """
    saved = load_checkpoints_file(str(folder)) if (folder / _RECORDS).exists() else []
    final = max((row.batch for row in saved if row.name == "final"), default=-1)
    _keep(folder, lambda row: not row.get("rolling") or row["batch"] > final)


def _keep(folder: Path, wanted: Callable[[Mapping[str, Any]], bool]) -> None:
    path = folder / _RECORDS
    if path.exists():
        kept = [line for line in path.read_text().splitlines() if wanted(json.loads(line))]
        path.write_text("".join(f"{line}\n" for line in kept))
