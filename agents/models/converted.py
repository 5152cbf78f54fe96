"""The folder of models converted from GGUF: each is whole, or not there."""

import errno
import hashlib
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import platformdirs
from filelock import FileLock

from tokengym.agents.models.files import ModelUnavailableError, missing_part


def converted_folder() -> Path:
    """Return the folder of converted models, in the user's cache folder (`XDG_CACHE_HOME`)."""
    return platformdirs.user_cache_path("tokengym") / "models"


def find_converted(key: str) -> Path | None:
    """Return the directory of a converted model, `None` if it is absent or lacks a file."""
    directory = converted_folder() / key
    return directory if directory.is_dir() and missing_part(directory) is None else None


def converted(key: str, write: Callable[[Path], None]) -> Path:
    """Return the directory of a converted model, which one process makes if it is absent.

    Args:
        key: name of its folder.
        write: fills an empty folder; an error leaves nothing behind.

    Raises:
        ModelUnavailableError: if the folder cannot be written, for example because the disk is
            full.
    """
    folder = converted_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{key}.lock"):
            if (found := find_converted(key)) is not None:
                return found
            for abandoned in (*folder.glob(f".{key}.*.partial"), *folder.glob(key)):
                shutil.rmtree(abandoned)
            with tempfile.TemporaryDirectory(prefix=f".{key}.", suffix=".partial", dir=folder) as t:
                new = Path(t) / "new"
                new.mkdir()
                write(new)
                return new.rename(folder / key)
    except ModelUnavailableError:
        raise
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or error
        raise ModelUnavailableError(f"cannot write models to {str(folder)!r}: {reason}") from error


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
