"""The state directory: one service at a time keeps its files there."""

import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from tokengym.agents.service.errors import StartupError
from tokengym.atomic_write import write_whole

LOCK, OWNER = "service.lock", "owner.json"
# A service whose parent has ended finishes its current operation before it ends too.
ORPHAN_S = 60.0


@contextmanager
def own(state_dir: Path) -> Iterator[Callable[[str, int | None], None]]:
    """Keep other services out of a state directory; the lock ends with this process.

    Yields:
        a function that notes the service's URL and the id of its parent process, for others.

    Raises:
        StartupError: if another service owns the directory; says which.
    """
    make_private(state_dir)
    lock, file = FileLock(state_dir / LOCK), state_dir / OWNER
    try:
        lock.acquire(timeout=ORPHAN_S if _is_orphan(_owner(file)) else 0)
    except Timeout:
        owner = _owner(file)
        known = owner.keys() >= {"pid", "node", "url"}
        by = "process {pid} on {node}, at {url}".format_map(owner) if known else "another process"
        raise StartupError(
            f"a state directory holds the files of one service, and {str(state_dir)!r} is in use "
            f"by {by}; stop that one, or choose another --state-dir"
        ) from None

    def note(url: str, parent: int | None) -> None:
        entry = {"pid": os.getpid(), "node": platform.node(), "url": url, "parent": parent}
        write_whole(file, json.dumps(entry).encode(), file.with_name(f"{OWNER}.{os.getpid()}"))

    try:
        yield note
    finally:
        file.unlink(missing_ok=True)
        lock.release()


def make_private(folder: Path) -> None:
    """Create a folder that other users cannot read; one that holds other things stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / LOCK).exists() or not any(folder.iterdir()):
        folder.chmod(0o700)


def _owner(file: Path) -> dict[str, Any]:
    """Return what is noted of the owner, or nothing if that cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        if file.is_file() and isinstance(entry := json.loads(file.read_bytes()), dict):
            return entry
    return {}


def _is_orphan(owner: dict[str, Any]) -> bool:
    """Return whether the process that a service was started for has ended."""
    parent = owner.get("parent")
    try:
        # What is damaged may be any number.
        os.kill(parent if isinstance(parent, int) and 0 < parent < 1 << 31 else os.getpid(), 0)
    except OSError as error:
        return isinstance(error, ProcessLookupError)
    return False
