"""What others put into the state directory, or damage there, stops no start and no listing."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import save_file

from tests.every import every
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
)
from tokengym.agents.service.errors import DamagedFileError, UnknownResourceError
from tokengym.agents.service.state.folder import LOCK, own
from tokengym.agents.service.state.service import Service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RUN = "0a1b-2c3d:train:0"
PATH = CheckpointPath(RUN, "weights", "step-1")
INFO = CheckpointInfo("model", "f00d", {"rank": 4}, True)
RECORD = {"base_model": "model", "lora": {"rank": 4}, "user_metadata": None}
FAR = 1e15  # seconds: no calendar has such a year

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "cut": b'{"pid": 5, "no',
    "bytes": bytes(range(256)),
    "large": b"9" * 5000,
    "a list": b"[1, 2]",
    "deep": b"[" * 100_000,
    "other keys": b'{"parent": "x"}',
}


def _link(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


OTHERS: dict[str, Callable[[Path], Any]] = {"a link": _link, "a fifo": os.mkfifo}


@pytest.mark.parametrize("name", ["starts", LOCK, "runs", "parked", "unnamed"])
def test_what_cannot_be_made_anew_is_named_in_one_line(
    model_dir: Path, tmp_path: Path, name: str
) -> None:
    at = tmp_path / name
    # A folder in the place of a file, or a file in that of a folder.
    at.mkdir() if name in ("starts", LOCK) else at.touch()
    config = ServiceConfig(models=(model_dir,), state_dir=tmp_path, threads=1, seed=1)
    with pytest.raises(OSError, match=rf"\A[^\n]*{at}[^\n]*\Z"), own(tmp_path):
        Service(config)


def _run_folder(root: Path) -> Path:
    return root / "runs" / "0a1b-2c3d+train+0"


def _copied(name: str) -> Callable[[Path], Path]:
    """Copy the checkpoint's file to another name."""

    def plant(root: Path) -> Path:
        sound = PATH.file(root / "runs")
        new = sound.with_name(name)
        shutil.copy(sound, new)
        return new

    return plant


def _made(place: str, make: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def plant(root: Path) -> Path:
        new = _run_folder(root) / place
        new.parent.mkdir(parents=True, exist_ok=True)
        make(new)
        return new

    return plant


FOREIGN: dict[str, Callable[[Path], Path]] = {
    **{
        name: _copied(name)
        for name in (
            "a (1).safetensors",
            ".~step-1.safetensors",
            ".step-1.safetensors.Xy12Zq",
            "step-1.safetensors.part",
            "step-1.SAFETENSORS",
            "\udcff.safetensors",
            f"{'x' * 129}.safetensors",
            "a\nb.safetensors",
        )
    },
    "a link to nothing": _made("weights/link.safetensors", _link),
    "a fifo": _made("weights/fifo.safetensors", os.mkfifo),
    "a folder like a part": _made("weights/.x.0123abcd.part", os.mkdir),
    "a copied run": lambda root: shutil.copytree(
        _run_folder(root), root / "runs" / "0a1b-2c3d+train+0 (copy)"
    ),
}


def _store(root: Path) -> CheckpointStore:
    store = CheckpointStore(root)
    store.save(PATH, {"x": torch.arange(8.0)}, INFO, overwrite=True)
    store.write_run(RUN, RECORD)
    return store


@every("kind", FOREIGN)
def test_foreign_files_are_skipped_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    _store(tmp_path)
    foreign = FOREIGN[kind](tmp_path)
    before = sorted(tmp_path.rglob("*"))
    store = CheckpointStore(tmp_path)
    with caplog.at_level("WARNING", "tokengym"):
        listed = store.listing()
        assert [path for path, _ in listed] == [PATH]
        assert store.listing(RUN) == listed
        assert [record["training_run_id"] for record in store.runs()] == [RUN]
    if kind != "a folder like a part":
        said = " ".join(record.getMessage() for record in caplog.records)
        assert repr(str(foreign))[1:-1] in said
    # What is another's stays.
    assert sorted(tmp_path.rglob("*")) == before


def _write(content: bytes, file: Path) -> None:
    file.write_bytes(content)


BROKEN: dict[str, Callable[[Path], Any]] = {
    **{kind: partial(_write, content) for kind, content in CONTENTS.items()},
    **OTHERS,
    "a folder": os.mkdir,
    "of another run": lambda file: file.write_text(
        json.dumps({"training_run_id": "../../x", **RECORD})
    ),
    "without a rank": lambda file: file.write_text(
        json.dumps({"training_run_id": "b:train:1", "base_model": "m", "lora": {}})
    ),
}


@every("kind", BROKEN)
def test_a_broken_record_hides_no_other_run(tmp_path: Path, kind: str) -> None:
    store = _store(tmp_path)
    file = tmp_path / "runs" / "b+train+1" / "run.json"
    file.parent.mkdir()
    BROKEN[kind](file)
    assert [record["training_run_id"] for record in store.runs()] == [RUN]
    with pytest.raises((DamagedFileError, UnknownResourceError), match=r"damaged|does not exist"):
        store.read_run("b:train:1")


HEADERS: dict[str, Any] = {
    "a time to live in words": {"ttl_seconds": "soon"},
    "another field": {"surprise": 1},
    "no fields": None,
}


@every("kind", [*HEADERS, *CONTENTS])
def test_a_broken_checkpoint_hides_no_other(tmp_path: Path, kind: str) -> None:
    store = _store(tmp_path)
    other = CheckpointPath(RUN, "weights", "other")
    file = other.file(tmp_path / "runs")
    if kind in CONTENTS:
        file.write_bytes(CONTENTS[kind])
    else:
        fields = {"base_model": "m", "fingerprint": "f", "lora": {}, "has_optimizer": False}
        changed = HEADERS[kind] and {**fields, "user_metadata": None, **HEADERS[kind]}
        header = {"checkpoint": json.dumps({"checksum": "", "info": changed})}
        save_file({"x": torch.ones(1)}, file, metadata=header)
    os.utime(file, (FAR, FAR)) if kind == "cut" else None
    assert [path.name for path, _ in store.listing()] == ["step-1"]
    with pytest.raises(DamagedFileError, match="weights/other is damaged"):
        store.load(other)
    store.delete(other)


@pytest.mark.parametrize("found", ["nothing", "an empty folder", "its own folder"])
def test_no_other_user_can_read_the_folder(tmp_path: Path, found: str) -> None:
    state = tmp_path / "a" / "state"
    if found != "nothing":
        state.mkdir(parents=True)
        state.chmod(0o755)
    if found == "its own folder":
        (state / LOCK).touch()
    with own(state):
        assert state.stat().st_mode & 0o777 == 0o700


def test_a_folder_with_other_things_keeps_its_permissions(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").touch()
    with own(tmp_path):
        assert tmp_path.stat().st_mode & 0o777 == 0o755
