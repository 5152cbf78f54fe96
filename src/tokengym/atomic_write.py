"""Writing a file atomically: a process may be killed, or a disk full, at any moment."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path, part: Path | None = None) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of `path` when the block ends.

    A block that raises leaves `path` as it was.

    Args:
        path: the file.
        part: where the new content is written first, in the same folder; `path` with `.new` at the
            end of its name if `None`. Writers of one file at once need different ones.
    """
    part = path.with_name(f"{path.name}.new") if part is None else part
    try:
        yield part
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        # A partial file would keep a full disk full.
        part.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: bytes, part: Path | None = None) -> None:
    """Write a file so that it holds either its old content or all of the new; see `replacing`."""
    with replacing(path, part) as new:
        new.write_bytes(content)
