"""A folder that one process writes at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from tokengym.envs.core.errors import OptionError


@contextmanager
def locked(file: Path, use: str) -> Iterator[None]:
    """Keep other processes out of a folder; the lock is released when this process ends.

    Args:
        file: of the lock, in the folder, which is made if it is missing.
        use: a participle for what the folder is locked for, such as `trained`.

    Raises:
        OptionError: if another process holds the lock.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(file).acquire(timeout=0)
    except Timeout:
        raise OptionError(f"{file.parent} is being {use} by another process") from None
    with lock:
        yield
