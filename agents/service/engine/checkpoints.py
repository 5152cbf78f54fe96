"""Checkpoints on disk: one file each, written atomically.

A file is written under a temporary name, flushed to disk and renamed, so a process killed at any
moment leaves either the old checkpoint or the new one. Metadata is in the file's own header, so a
name and its contents cannot disagree. No time is in it, so that equal runs write equal files: a
checkpoint was created when its file was last modified.
"""

import hashlib
import json
import logging
import re
import secrets
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import safe_open
from safetensors.torch import save

from tokengym.agents.service.config import CHECKPOINT_SCHEME
from tokengym.agents.service.engine.adapters import checksum
from tokengym.agents.service.errors import BadRequestError, DamagedFileError, UnknownResourceError
from tokengym.atomic_write import write_whole

KINDS = {"weights": "training", "sampler_weights": "sampler"}
NAME_RULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")
RUN_RULE = re.compile(r"[A-Za-z0-9-]{1,64}:train:[0-9]{1,9}\Z")
MIN_TTL, MAX_TTL = 3600, 10 * 366 * 86400
SUFFIX = ".safetensors"
RECORD = "run.json"
# Ends the name of a file while it is written; a dot begins it, which no checkpoint's name does.
PART = ".part"
LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}\.part\Z")
# How many copies of a checkpoint's tensors are in memory while safetensors writes them.
_COPIES = 3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckpointPath:
    """A parsed `tinker://run/kind/name`."""

    run_id: str
    kind: str
    name: str

    @classmethod
    def parse(cls, uri: str) -> Self:
        """Parse and check a path.

        Raises:
            BadRequestError: if it is not a checkpoint path.
        """
        parts = uri.removeprefix(CHECKPOINT_SCHEME).split("/")
        if not uri.startswith(CHECKPOINT_SCHEME) or len(parts) != 3:
            raise BadRequestError(f"path must look like tinker://run/weights/name, got {uri!r}")
        return cls(*parts)

    def __post_init__(self) -> None:
        """Check every part before it can name a file."""
        _check_run_id(self.run_id)
        if self.kind not in KINDS:
            raise BadRequestError(
                f"checkpoint kind must be one of {', '.join(KINDS)}, got {self.kind!r}"
            )
        if not NAME_RULE.match(self.name):
            raise BadRequestError(
                "checkpoint name must be 1 to 128 letters, digits, '.', '_' or '-' and not start "
                f"with '.' or '-', got {self.name!r}"
            )

    @property
    def uri(self) -> str:
        """The path as the SDK writes it."""
        return f"{CHECKPOINT_SCHEME}{self.run_id}/{self.kind}/{self.name}"

    def file(self, root: Path) -> Path:
        """Return its file among those below a directory."""
        return _run_folder(root, self.run_id) / self.kind / f"{self.name}{SUFFIX}"

    def existing(self, root: Path) -> Path:
        """Return its file.

        Raises:
            UnknownResourceError: if there is none.
        """
        if not (file := self.file(root)).is_file():
            raise UnknownResourceError(f"checkpoint {self.uri} does not exist below {root}")
        return file


@dataclass(frozen=True)
class CheckpointInfo:
    """A checkpoint's metadata, readable without its tensors.

    Attributes:
        base_model: name of the model it belongs to.
        fingerprint: hash of that model's weights.
        lora: the adapter's specification as plain data.
        has_optimizer: whether optimizer state is in it.
        user_metadata: what the caller attached.
        ttl_seconds: its time to live, or None for ever.
        created_at: when the file was written, in seconds since 1970; not part of the file.
        nbytes: size of the file; not part of it either.
    """

    base_model: str
    fingerprint: str
    lora: dict[str, Any]
    has_optimizer: bool
    user_metadata: dict[str, str] | None = None
    ttl_seconds: float | None = None
    created_at: float = field(default=0.0, compare=False)
    nbytes: int = field(default=0, compare=False)

    @property
    def created(self) -> str:
        """When it was created, as ISO 8601 text."""
        return _text(self.created_at)

    @property
    def expires(self) -> str | None:
        """When it expires, as ISO 8601 text, or None for never."""
        return None if self.ttl_seconds is None else _text(self.created_at + self.ttl_seconds)

    @property
    def expired(self) -> bool:
        """Whether its time to live is over."""
        ttl = self.ttl_seconds
        return ttl is not None and self.created_at + ttl <= time.time()


class CheckpointStore:
    """The checkpoints and run records below one directory."""

    def __init__(self, root: Path) -> None:
        self._root = root / "runs"
        self._root.mkdir(parents=True, exist_ok=True)
        for leftover in self._root.rglob(f".*{PART}"):
            if leftover.is_file() and LEFTOVER.match(leftover.name):
                leftover.unlink()

    def save(
        self,
        path: CheckpointPath,
        tensors: Mapping[str, torch.Tensor],
        info: CheckpointInfo,
        *,
        overwrite: bool,
    ) -> None:
        """Write a checkpoint.

        Raises:
            BadRequestError: if the name is taken and `overwrite` is false.
        """
        target = path.file(self._root)
        if target.exists() and not overwrite and not self.info(path, allow_expired=True).expired:
            raise BadRequestError(
                f"checkpoint name must be new unless overwrite is set, {path.uri} exists"
            )
        fields = asdict(info)
        del fields["created_at"], fields["nbytes"]
        # One key, as safetensors writes several in a random order.
        header = json.dumps({"checksum": checksum(tensors, json.dumps(fields)), "info": fields})
        # Out of memory, safetensors ends or hangs the process: Python says so instead.
        bytearray(_COPIES * sum(tensor.nbytes for tensor in tensors.values()))
        write_atomically(target, save(dict(tensors), metadata={"checkpoint": header}))

    def load(self, path: CheckpointPath) -> tuple[dict[str, torch.Tensor], CheckpointInfo]:
        """Read a checkpoint.

        Raises:
            UnknownResourceError: if there is none or it has expired.
            DamagedFileError: if it does not hold what was saved.
        """
        info = self.info(path)
        with _sound(f"checkpoint {path.uri}"):
            with safe_open(path.existing(self._root), framework="pt") as opened:
                tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
                header = json.loads(opened.metadata()["checkpoint"])
            if header["checksum"] != checksum(tensors, json.dumps(header["info"])):
                raise ValueError("its checksum differs")
        return tensors, info

    def info(self, path: CheckpointPath, *, allow_expired: bool = False) -> CheckpointInfo:
        """Read a checkpoint's metadata."""
        file = path.existing(self._root)
        with _sound(f"checkpoint {path.uri}"), safe_open(file, framework="pt") as opened:
            fields = json.loads(opened.metadata()["checkpoint"])["info"]
            stat = file.stat()
            info = CheckpointInfo(**fields, created_at=stat.st_mtime, nbytes=stat.st_size)
            checked_ttl(info.ttl_seconds)
        if info.expired and not allow_expired:
            raise UnknownResourceError(f"checkpoint {path.uri} expired at {info.expires}")
        return info

    def set_ttl(self, path: CheckpointPath, seconds: int | None) -> None:
        """Change or remove the expiry of a checkpoint."""
        tensors, info = self.load(path)
        self.save(path, tensors, replace(info, ttl_seconds=checked_ttl(seconds)), overwrite=True)

    def delete(self, path: CheckpointPath) -> None:
        """Remove a checkpoint.

        Raises:
            UnknownResourceError: if there is none.
        """
        path.existing(self._root).unlink()

    def listing(self, run_id: str | None = None) -> list[tuple[CheckpointPath, CheckpointInfo]]:
        """List the sound checkpoints of a run, or of all, newest first; removes expired ones."""
        checkpoints: list[tuple[CheckpointPath, CheckpointInfo]] = []
        for path in self._paths(run_id):
            try:
                info = self.info(path, allow_expired=True)
            except DamagedFileError as error:
                log.warning("skipped: %s", error)
                continue
            if info.expired:
                self.delete(path)
            else:
                checkpoints.append((path, info))
        return sorted(checkpoints, key=lambda item: item[1].created_at, reverse=True)

    def write_run(self, run_id: str, record: Mapping[str, Any]) -> None:
        """Write a training run's record, with the run's id."""
        content = json.dumps({"training_run_id": run_id, **record}).encode()
        write_atomically(_run_folder(self._root, run_id) / RECORD, content)

    def read_run(self, run_id: str) -> dict[str, Any]:
        """Read a training run's record.

        Raises:
            UnknownResourceError: if there is none.
        """
        _check_run_id(run_id)
        file = _run_folder(self._root, run_id) / RECORD
        if not file.is_file():
            raise UnknownResourceError(f"training run {run_id!r} does not exist")
        return _record(file)

    def runs(self) -> list[dict[str, Any]]:
        """Return the records of all training runs that can be read, newest first."""
        records = []
        for file in self._root.glob(f"*/{RECORD}"):
            try:
                records.append(_record(file))
            except DamagedFileError as error:
                log.warning("skipped: %s", error)
        return sorted(records, key=lambda record: str(record["created"]), reverse=True)

    def _paths(self, run_id: str | None) -> Iterator[CheckpointPath]:
        folders = [_run_folder(self._root, run_id)] if run_id else sorted(self._root.iterdir())
        for folder in folders:
            for kind in KINDS:
                for file in sorted((folder / kind).glob("*")):
                    with suppress(BadRequestError, OSError):
                        path = CheckpointPath(folder.name.replace("+", ":"), kind, file.stem)
                        if path.file(self._root) == file and file.is_file():
                            yield path
                            continue
                    if not LEFTOVER.match(file.name):
                        log.warning("skipped: %r is no checkpoint", str(file))


def copy_checkpoint(uri: str, source: Path, target: Path) -> str:
    """Copy a checkpoint and its run's record from one state directory to another.

    Services may be running on either. Runs of equal seeds have equal ids, so that the copy's run
    is named after what the checkpoint holds: no other one ever lies at its path.

    Args:
        uri: the checkpoint, `tinker://run/kind/name`.
        source: state directory to copy from.
        target: state directory to copy into.

    Returns:
        the copy's path, `tinker://run/kind/name`.

    Raises:
        BadRequestError: if `uri` is not a checkpoint path.
        UnknownResourceError: if `source` does not have it.
    """
    path = CheckpointPath.parse(uri)
    source, target = source / "runs", target / "runs"
    file, record = path.existing(source), _run_folder(source, path.run_id) / RECORD
    content = file.read_bytes()
    name = uuid.UUID(bytes=hashlib.blake2b(content, digest_size=16).digest(), version=4)
    copy = replace(path, run_id=f"{name}:train:0")
    described = {**json.loads(record.read_bytes()), "training_run_id": copy.run_id}
    # Both were created, and expire, when the originals were and do.
    copied = copy.file(target), _run_folder(target, copy.run_id) / RECORD
    for new, old, data in zip(
        copied, (file, record), (content, json.dumps(described).encode()), strict=True
    ):
        write_atomically(new, data)
        shutil.copystat(old, new)
    return copy.uri


def write_atomically(target: Path, content: bytes) -> None:
    """Write a file with `write_whole`, creating its folder if necessary."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PART}")
    write_whole(target, content, part)


def _run_folder(root: Path, run_id: str) -> Path:
    return root / run_id.replace(":", "+")


def _check_run_id(run_id: str) -> None:
    if not RUN_RULE.match(run_id):
        raise BadRequestError(f"training run must look like session:train:0, got {run_id!r}")


def _record(file: Path) -> dict[str, Any]:
    with _sound(f"record {str(file)!r}"):
        if not file.is_file():
            raise ValueError("it is no file")
        record: dict[str, Any] = json.loads(file.read_bytes())
        if _run_folder(file.parent.parent, record["training_run_id"]) != file.parent:
            raise ValueError("it is of another training run")
        if not isinstance(record["base_model"], str) or not isinstance(record["lora"]["rank"], int):
            raise ValueError("it names no model and rank")
        return {**record, "created": _text(file.stat().st_mtime)}


@contextmanager
def _sound(what: str) -> Iterator[None]:
    """Raise an error that `what` is damaged if reading it fails."""
    try:
        yield
    except UnknownResourceError:
        raise
    except Exception as error:  # of a damaged file anything may be raised
        raise DamagedFileError(f"{what} is damaged: {error}") from error


def checked_ttl(seconds: float | None) -> float | None:
    """Return a checkpoint's time to live, None if it never expires.

    Raises:
        BadRequestError: if it is not between one hour and ten years.
    """
    if seconds is not None and not MIN_TTL <= seconds <= MAX_TTL:
        raise BadRequestError(f"ttl_seconds must be between {MIN_TTL} and {MAX_TTL}, got {seconds}")
    return seconds


def _text(seconds: float) -> str:
    # A file may bear any time.
    return datetime.fromtimestamp(min(max(seconds, 0.0), 2e11), UTC).isoformat()
