"""Weights & Biases, for what logs to it beside the files of a run."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokengym.envs.core.errors import OptionError


def require_wandb() -> None:
    """Refuse to log to Weights & Biases where its client is not installed.

    Raises:
        OptionError: saying what to install.
    """
    if find_spec("wandb") is None:
        raise OptionError("logging to Weights & Biases needs wandb: pip install 'tokengym[wandb]'")


@cache
def wandb_run(folder: Path, project: str) -> Any:
    """Return the run of Weights & Biases that a folder's metrics go to, the same one each time.

    It is called like the folder, keeps its files there, and ends with the process.
    """
    import wandb  # pyright: ignore[reportMissingImports]

    return wandb.init(project=project, name=folder.name, dir=str(folder))
