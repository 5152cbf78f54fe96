"""What others put into the state directory, or damage there, stops no start and no listing."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import tinker
import torch
from safetensors.torch import save_file

from tests.every import every
from tokengym.agents.service import LocalService
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
)
from tokengym.agents.service.state.folder import LOCK, OWNER, own
from tokengym.agents.service.state.seeds import SeedSource
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
    "other text": b"hello",
    "bytes": bytes(range(256)),
    "a number": b"7.5",
    "negative": b"-3",
    "large": b"9" * 5000,
    "a list": b"[1, 2]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "other keys": b'{"parent": "x"}',
    "no process": b'{"pid": [], "node": 1, "url": {}, "parent": 1e300}',
    "every process": b'{"parent": -1}',
    "too large": b'{"parent": ' + b"9" * 30 + b"}",
    "NaN": b'{"parent": NaN}',
    "spaces": b" " * 1000,
}


def _link(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


def _loop(file: Path) -> None:
    file.symlink_to(file)


OTHERS: dict[str, Callable[[Path], Any]] = {
    "a link": _link,
    "a loop": _loop,
    "a fifo": os.mkfifo,
}


@pytest.mark.parametrize("name", [OWNER, "starts"])
@every("kind", [*CONTENTS, *OTHERS])
def test_a_damaged_note_is_made_anew(tmp_path: Path, name: str, kind: str) -> None:
    file = tmp_path / name
    if kind in CONTENTS:
        file.write_bytes(CONTENTS[kind])
    else:
        OTHERS[kind](file)
    ids = set()
    for _ in range(2):
        with own(tmp_path) as note:
            ids.add(SeedSource.open(7, tmp_path).session_id())
            note("http://127.0.0.1:1", None)
            assert json.loads((tmp_path / OWNER).read_bytes())["pid"] == os.getpid()
        assert not (tmp_path / OWNER).exists()
    # Whatever was counted before, no two starts name their sessions alike.
    assert len({*ids, SeedSource(7, 0).session_id()}) == (3 if name == "starts" else 2)
    assert int((tmp_path / "starts").read_text()) >= 2


@pytest.mark.parametrize("name", [OWNER, "starts", LOCK, "runs", "parked", "unnamed"])
def test_what_cannot_be_made_anew_is_named_in_one_line(
    model_dir: Path, tmp_path: Path, name: str
) -> None:
    at = tmp_path / name
    # A folder in the place of a file, or a file in that of a folder.
    at.mkdir() if name in (OWNER, "starts", LOCK) else at.touch()
    config = ServiceConfig(models=(model_dir,), state_dir=tmp_path, threads=1, seed=1)
    with (  # noqa: PT012
        pytest.raises(OSError, match=rf"\A[^\n]*{at}[^\n]*\Z"),
        own(tmp_path) as note,
    ):
        note("http://127.0.0.1:1", None)
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


def _folder_copied(name: str) -> Callable[[Path], Path]:
    def plant(root: Path) -> Path:
        return shutil.copytree(_run_folder(root), root / "runs" / name)

    return plant


FOREIGN: dict[str, Callable[[Path], Path]] = {
    **{
        name: _copied(name)
        for name in (
            "a (1).safetensors",
            "step-1 (copy).safetensors",
            "Copy of step-1.safetensors",
            "step-1 - Kopie.safetensors",
            "step-1 (conflicted copy 2026-01-01).safetensors",
            "step-1.sync-conflict-20260101-120000-ABCDEFG.safetensors~",
            ".step-1.safetensors",
            ".~step-1.safetensors",
            "._step-1.safetensors",
            ".syncthing.step-1.safetensors.tmp",
            ".step-1.safetensors.Xy12Zq",
            "step-1.safetensors.part",
            ".step-1.safetensors.part",
            "step-1.safetensors.crdownload",
            "step-1.SAFETENSORS",
            "шаг.safetensors",
            "\udcff.safetensors",
            f"{'x' * 129}.safetensors",
            "a\nb.safetensors",
            "Thumbs.db",
        )
    },
    "a link to nothing": _made("weights/link.safetensors", _link),
    "a loop": _made("sampler_weights/loop.safetensors", _loop),
    "a fifo": _made("weights/fifo.safetensors", os.mkfifo),
    "a folder": _made("weights/folder.safetensors", os.mkdir),
    "a folder like a part": _made("weights/.x.0123abcd.part", os.mkdir),
    "a copied run": _folder_copied("0a1b-2c3d+train+0 (copy)"),
    "a run of another name": _folder_copied("lost+found"),
    "a run with colons": _folder_copied("ffff:train:0"),
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
    "with a list for a model": lambda file: file.write_text(
        json.dumps({"training_run_id": "b:train:1", **RECORD, "base_model": []})
    ),
}


@every("kind", BROKEN)
def test_a_broken_record_hides_no_other_run(tmp_path: Path, kind: str) -> None:
    store = _store(tmp_path)
    file = tmp_path / "runs" / "b+train+1" / "run.json"
    file.parent.mkdir()
    BROKEN[kind](file)
    assert [record["training_run_id"] for record in store.runs()] == [RUN]


HEADERS: dict[str, Any] = {
    "a time to live in words": {"ttl_seconds": "soon"},
    "an endless one": {"ttl_seconds": 1e308},
    "another field": {"surprise": 1},
    "no fields": None,
}


@every("kind", [*HEADERS, *CONTENTS])
def test_a_broken_checkpoint_is_listed_as_damaged(tmp_path: Path, kind: str) -> None:
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
    damaged = {path.name: info.damaged for path, info in store.listing()}
    assert damaged == {"step-1": False, "other": True}
    assert all(info.created for _, info in store.listing())
    store.delete(other)


@pytest.mark.nightly
def test_every_listing_answers_beside_foreign_files(model_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with LocalService(model_dir, state_dir=state, threads=1) as service:
        assert state.stat().st_mode & 0o777 == 0o700
        _store(state)
        for plant in reversed(FOREIGN.values()):
            plant(state)
        for number, make in enumerate(BROKEN.values()):
            file = state / "runs" / f"b+train+{number}" / "run.json"
            file.parent.mkdir()
            make(file)
        rest = tinker.RestClient(base_url=service.base_url, api_key=service.api_key)
        checkpoints = rest.list_user_checkpoints().result().checkpoints
        assert [one.tinker_path for one in checkpoints] == [PATH.uri]
        assert rest.list_checkpoints(RUN).result().checkpoints == checkpoints
        (run,) = rest.list_training_runs().result().training_runs
        assert run.training_run_id == RUN
        assert rest.get_training_run(RUN).result() == run
        assert "a (1).safetensors" in service.log_path.read_text()
    # It starts again beside all of it.
    (state / OWNER).write_text("[")
    (state / "starts").write_text("many")
    with LocalService(model_dir, state_dir=state, threads=1, seed=3) as service:
        assert service.returncode is None


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
