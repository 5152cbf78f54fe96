"""The state directory: one service at a time keeps its files there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from tokengym.agents.service.errors import StartupError

LOCK = "service.lock"
ENDING_S = 20.0
"""A service whose parent has ended finishes its current piece of work before it ends too."""

log = logging.getLogger(__name__)


@contextmanager
def own(state_dir: Path) -> Iterator[None]:
    """Keep other services out of a state directory; the lock ends with this process.

    Raises:
        StartupError: if another service owns the directory.
    """
    make_private(state_dir)
    lock = FileLock(state_dir / LOCK)
    for patience in (0.0, ENDING_S):
        with suppress(Timeout):
            lock.acquire(timeout=patience)
            break
        log.warning("%s is in use: up to %g s for that service to end", state_dir, ENDING_S)
    else:
        raise StartupError(
            f"a state directory holds the files of one service, and {str(state_dir)!r} is in use "
            "by another; stop that one, or choose another --state-dir"
        )
    try:
        yield
    finally:
        lock.release()


def make_private(folder: Path) -> None:
    """Create a folder that other users cannot read; one that holds other things stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / LOCK).exists() or not any(folder.iterdir()):
        folder.chmod(0o700)
