"""Writing a file atomically: a process may be killed, or a disk full, at any moment."""

import os
from pathlib import Path


def write_whole(path: Path, content: bytes, part: Path | None = None) -> None:
    """Write a file so that it holds either its old content or all of the new.

    Args:
        path: the file.
        content: what it is to hold.
        part: where the new content is written first, in the same folder; `path` with `.new` at the
            end of its name if `None`. Writers of one file at once need different ones.
    """
    part = path.with_name(f"{path.name}.new") if part is None else part
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        # What is left of it would keep a full disk full.
        part.unlink(missing_ok=True)
        raise
