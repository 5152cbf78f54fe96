"""The folder of converted models: each is complete or absent, with a manifest of hashes."""

import errno
import hashlib
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import platformdirs
from filelock import FileLock
from pydantic import BaseModel

from tokengym.agents.models.errors import ModelUnavailableError

MANIFEST = "tokengym.json"
VERSION: Literal[1] = 1
"""Version of the conversion; a model that an older version converted is converted again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelSource:
    """Where a converted model comes from.

    Attributes:
        source: what it was made from, for people to read.
        sha256: hash of the file it was converted from.
    """

    source: str
    sha256: str


class _File(BaseModel):
    size: int
    sha256: str


class _Manifest(BaseModel):
    version: Literal[1]
    origin: ModelSource
    files: dict[str, _File]


@dataclass(frozen=True)
class CachedModel:
    """A model in the cache.

    Attributes:
        key: name of its folder.
        directory: the folder.
        origin: where it comes from; `None` if its manifest is damaged.
        size: bytes on disk.
        intact: whether its files are as the manifest says.
    """

    key: str
    directory: Path
    origin: ModelSource | None
    size: int
    intact: bool


def cache_folder() -> Path:
    """Return the folder of converted models, in the user's cache folder (`XDG_CACHE_HOME`)."""
    return platformdirs.user_cache_path("tokengym") / "models"


def find(key: str, *, verify: bool = False, sha256: str | None = None) -> Path | None:
    """Return the directory of a cached model, `None` if it is absent or damaged.

    Args:
        key: name of its folder.
        verify: compare the hashes of all files, not their sizes alone.
        sha256: hash of the file it must come from, if that is known.
    """
    directory = cache_folder() / key
    manifest = _read_manifest(directory)
    if manifest is None or (sha256 is not None and manifest.origin.sha256 != sha256):
        return None
    return directory if _intact(directory, manifest, verify=verify) else None


def entries(*, verify: bool = False) -> list[CachedModel]:
    """Return the models in the cache, sorted by key."""
    models = []
    for directory in sorted(cache_folder().glob("[!.]*")):
        manifest = _read_manifest(directory)
        origin = manifest.origin if manifest else None
        size = sum(path.stat().st_size for path in directory.glob("*"))
        intact = manifest is not None and _intact(directory, manifest, verify=verify)
        models.append(CachedModel(directory.name, directory, origin, size, intact))
    return models


def build(
    key: str,
    write: Callable[[Path], ModelSource],
    *,
    verify: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Path:
    """Make a model in the cache unless another process has just made it; returns its directory.

    Args:
        key: name of its folder.
        write: fills an empty folder; what it raises leaves the cache as it was.
        verify: compare hashes where another process has made it.
        progress: called with a line if another process is making it.

    Raises:
        ModelUnavailableError: if the cache cannot be written, for example because the disk is full.
    """
    folder = cache_folder()
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f".{key}.lock")
        try:
            turn = lock.acquire(timeout=0)
        except TimeoutError:
            progress(f"waiting for another process that makes {key}")
            turn = lock.acquire()
        with turn:
            made = find(key, verify=verify)
            if made is not None:
                return made
            for abandoned in folder.glob(f".{key}.*.partial"):
                shutil.rmtree(abandoned)
            with tempfile.TemporaryDirectory(prefix=f".{key}.", suffix=".partial", dir=folder) as t:
                partial, replaced = Path(t) / "new", Path(t) / "old"
                partial.mkdir()
                origin = write(partial)
                _write_manifest(partial, origin)
                if (folder / key).exists():
                    log.warning("replacing the damaged model in %s", folder / key)
                    (folder / key).rename(replaced)
                partial.rename(folder / key)
            return folder / key


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """Turn a disk error into one line that names the folder."""
    try:
        yield
    except ModelUnavailableError:
        raise
    except OSError as error:
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or error
        raise ModelUnavailableError(f"cannot write models to {str(folder)!r}: {reason}") from error


def _write_manifest(directory: Path, origin: ModelSource) -> None:
    files = {
        path.name: _File(size=path.stat().st_size, sha256=file_hash(path))
        for path in sorted(directory.iterdir())
    }
    manifest = _Manifest(version=VERSION, origin=origin, files=files)
    (directory / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n")


def _read_manifest(directory: Path) -> _Manifest | None:
    """Return the manifest of a cached model, `None` if it is absent, damaged or outdated."""
    try:
        return _Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def _intact(directory: Path, manifest: _Manifest, *, verify: bool) -> bool:
    for name, file in manifest.files.items():
        path = directory / name
        if not path.is_file() or path.stat().st_size != file.size:
            return False
        if verify and file_hash(path) != file.sha256:
            return False
    return True
