"""The figures of a step under the names that the field uses, beside the cookbook's."""

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from tinker_cookbook.utils import ml_log

from tokengym.agents.training.folder.monitor import named


class NamedMetrics(ml_log.MultiplexLogger):
    """Logs what it is given and, of a step, the named figures.

    Args:
        usual: the cookbook's logger, which this one stands in for.
    """

    def __init__(self, usual: ml_log.Logger) -> None:
        super().__init__(cast("ml_log.MultiplexLogger", usual).loggers)

    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        """Log metrics, each once."""
        super().log_metrics(metrics | named(metrics), step)


@contextlib.contextmanager
def named_in_cookbook() -> Iterator[None]:
    """Let the cookbook's loop log the named figures too; it has no place for a logger of ours."""
    usual = ml_log.setup_logging

    def with_names(*args: Any, **options: Any) -> ml_log.Logger:
        return NamedMetrics(usual(*args, **options))

    ml_log.setup_logging = with_names
    try:
        yield
    finally:
        ml_log.setup_logging = usual
