"""A run's metrics for TensorBoard, step by step, in `tensorboard/` of its folder."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tokengym.agents.training.folder.monitor import StepRow
from tokengym.envs.core.errors import OptionError


def require_tensorboard() -> None:
    """Refuse to write events where TensorBoard is not installed.

    Raises:
        OptionError: saying what to install.
    """
    if find_spec("tensorboard") is None:
        raise OptionError("tensorboard=True needs TensorBoard: pip install tensorboard")


class TensorBoardLog:
    """Writes the metrics of steps as events.

    Args:
        writer: of `torch.utils.tensorboard`.
    """

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator["TensorBoardLog"]:
        """Write into a folder; it is closed afterwards."""
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(folder)) as writer:
            yield cls(writer)

    def write(self, row: StepRow) -> None:
        """Write one step: every metric that is a finite number."""
        for name, value in row.metrics.items():
            if isinstance(value, int | float) and math.isfinite(value):
                self._writer.add_scalar(name, value, row.step)
        self._writer.flush()
