"""Writing files that are whole after a power cut, with their names."""

import os
import re
import secrets
from pathlib import Path

from tokengym.atomic_write import write_whole

# Ends the name of a file while it is written; a dot begins it, which no checkpoint's name does.
PART = ".part"
LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}\.part\Z")


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file with `write_whole`, creating its folder if necessary, and sync the folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PART}")
    write_whole(target, content, part)
    sync_directory(target.parent)


def sync_directory(folder: Path) -> None:
    """Flush the names of a folder's files to disk."""
    # Without this a power cut can undo the rename although the file itself is on disk.
    if os.name == "nt":
        return  # Windows opens no folder; its file system keeps a journal of names.
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
