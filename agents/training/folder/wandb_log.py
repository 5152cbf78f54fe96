"""Weights & Biases, for what logs to it beside the files of a run."""

from functools import cache
from pathlib import Path
from typing import Any


@cache
def wandb_run(folder: Path, project: str) -> Any:
    """Return the run of Weights & Biases that a folder's metrics go to, the same one each time.

    It is called like the folder, keeps its files there, and ends with the process.
    """
    import wandb  # pyright: ignore[reportMissingImports]

    return wandb.init(project=project, name=folder.name, dir=str(folder))
