"""Reading a user's files, gzipped or not, without exceeding memory.

A few megabytes of gzip unpack to gigabytes, so every bound counts what is unpacked.
"""

import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, AnyStr, cast

from tokengym.envs.core.errors import DataError

LONGEST_FILE = 1 << 28
"""Longest file, in bytes, that is read whole; others are read row by row."""
MOST_UNPACKED = 100
LEAST_SUSPECT = 1 << 25
"""Once longer than this, the largest factor by which a gzip may unpack."""
LONGEST_ROW = 1 << 26
"""Longest line, or item of a JSON array, in bytes or characters."""
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 17


def open_unpacked(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, unpacked if it is gzipped, whatever its name.

    Raises:
        OSError: if it cannot be read, or unpacks to many times its size.
    """
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return (
        cast("IO[bytes]", io.BufferedReader(_Unpacked(path), _CHUNK)) if packed else path.open("rb")
    )


class _Unpacked(io.RawIOBase):
    """Contents of a gzipped file; reading fails once they are far longer than the file."""

    def __init__(self, path: Path) -> None:
        self._packed = path.open("rb")
        self._file = gzip.GzipFile(fileobj=self._packed)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: Any, /) -> int:
        # Bytes before the damage count, so that no more is read at once.
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        if self._file.tell() > max(LEAST_SUSPECT, MOST_UNPACKED * self._packed.tell()):
            raise OSError(f"it unpacks to more than {MOST_UNPACKED} times its size")
        return len(data)

    def close(self) -> None:
        self._file.close()
        self._packed.close()
        super().close()


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file.

    Raises:
        DataError: if it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def read_whole(file: IO[AnyStr], start: AnyStr) -> AnyStr:
    """Return all of a file.

    Args:
        file: the file.
        start: what has been read of it already.

    Raises:
        OSError: if that is more than is read whole.
    """
    rest = file.read(max(0, LONGEST_FILE - len(start)) + 1)
    if len(start) + len(rest) > LONGEST_FILE:
        raise OSError(f"it is longer than {LONGEST_FILE >> 20} MiB, the most that is read whole")
    return start + rest


def bounded_lines(file: IO[AnyStr]) -> Iterator[AnyStr | None]:
    """Yield the lines of a file with their ends; `None` for one too long to hold."""
    while line := file.readline(LONGEST_ROW):
        if len(line) < LONGEST_ROW or _ends(line):
            yield line
            continue
        while (more := file.readline(LONGEST_ROW)) and not _ends(more):
            pass
        yield None


def _ends(line: str | bytes) -> bool:
    return line[-1:] in ("\n", "\r", b"\n")


def too_long(most: int = 0) -> str:
    """Return why a line or an item is left out; the bound is `LONGEST_ROW` unless `most` is."""
    return f"longer than {(most or LONGEST_ROW) >> 20} MiB"
