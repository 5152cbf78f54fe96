"""Where a run's metrics also go: TensorBoard, in `tensorboard/` of its folder; Weights & Biases."""

import math
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokengym.agents.training.folder.monitor import StepRow
from tokengym.envs.core.errors import OptionError

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


def require_tensorboard() -> None:
    """Refuse to write events where TensorBoard is not installed.

    Raises:
        OptionError: saying what to install.
    """
    if find_spec("tensorboard") is None:
        raise OptionError("tensorboard=True needs TensorBoard: pip install tensorboard")


def event_writer(folder: Path) -> "SummaryWriter":
    """Return a writer of events into a folder, a context manager that closes it."""
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder))


def write_events(writer: "SummaryWriter", row: StepRow) -> None:
    """Write one step: every metric that is a finite number."""
    for name, value in row.metrics.items():
        if isinstance(value, int | float) and math.isfinite(value):
            writer.add_scalar(name, value, row.step)
    writer.flush()


@cache
def wandb_run(folder: Path, project: str) -> Any:
    """Return the run of Weights & Biases that a folder's metrics go to, the same one each time.

    It is called like the folder, keeps its files there, and ends with the process.
    """
    import wandb  # pyright: ignore[reportMissingImports]

    return wandb.init(project=project, name=folder.name, dir=str(folder))
