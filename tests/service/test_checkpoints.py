"""A checkpoint is whole or absent, says what it is, and goes away when it should."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import TYPE_CHECKING

import pytest
import torch

from tests.warm import Interpreter
from tokengym.agents.service.engine.checkpoints import (
    CheckpointInfo,
    CheckpointPath,
    CheckpointStore,
    checked_ttl,
    copy_checkpoint,
)
from tokengym.agents.service.errors import BadRequestError, DamagedFileError, UnknownResourceError

if TYPE_CHECKING:
    from pathlib import Path

RUN = "0a1b-2c3d:train:0"
PATH = CheckpointPath(RUN, "weights", "step-1")
INFO = CheckpointInfo("model", "f00d", {"rank": 4}, True)

# Forks a writer for each kill. Prints the value that survived each.
KILLER = f"""
import os, signal, time, torch
from pathlib import Path
from tokengym.agents.service.engine.checkpoints import *
root, run = Path("checkpoints"), {RUN!r}
torch.set_num_threads(1)
path = CheckpointPath(run, "weights", "step-1")
info = CheckpointInfo("model", "f00d", {{}}, True)
for kill in range(12):
    started, told = os.pipe()
    child = os.fork()
    if child == 0:
        store = CheckpointStore(root)
        for value in range(1, 10**9):
            tensors = {{k: torch.full((n,), float(value)) for k, n in (("a", 200_000), ("b", 5))}}
            store.save(path, tensors, info, overwrite=True)
            if value == 1:
                os.write(told, b"x")
    os.read(started, 1)
    time.sleep(0.005 * kill)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    tensors, _ = CheckpointStore(root).load(path)
    left = [file.name for file in root.rglob("*") if file.is_file()]
    print(*sorted({{float(v) for t in tensors.values() for v in t.unique()}}), *left)
"""


def test_what_is_saved_twice_is_the_same_file(tmp_path: Path) -> None:
    tensors = {name: torch.arange(5.0) for name in "abc"}
    files: set[bytes] = set()
    # Two keys in a random order would be equal once in a thousand times.
    for number in range(10):
        folder = tmp_path / str(number)
        CheckpointStore(folder).save(PATH, tensors, INFO, overwrite=False)
        files |= {file.read_bytes() for file in folder.rglob("*.safetensors")}
    assert len(files) == 1


@pytest.mark.nightly
def test_kill_at_any_moment_leaves_one_whole_checkpoint(tmp_path: Path) -> None:
    interpreter = Interpreter(tmp_path, os.environ, tmp_path / "printed.txt")
    ended, output = interpreter.execute(KILLER, "killer")
    interpreter.close()
    assert ended, output
    lines = [line.split() for line in output.splitlines()]
    assert len(lines) == 12
    # One value throughout, and nothing that the killed writer left half-written.
    assert all(len(line) == 2 and line[1] == "step-1.safetensors" for line in lines)
    assert max(float(line[0]) for line in lines) > 1


def test_a_damaged_checkpoint_is_named_and_only_others_listed(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    paths = {name: CheckpointPath(RUN, "weights", name) for name in ("sound", "cut", "flipped")}
    for path in paths.values():
        store.save(path, {"x": torch.arange(8.0)}, INFO, overwrite=False)
    files = {file.stem: file for file in tmp_path.rglob("*.safetensors")}
    files["cut"].write_bytes(files["cut"].read_bytes()[:40])
    content = bytearray(files["flipped"].read_bytes())
    content[-7] ^= 1
    files["flipped"].write_bytes(content)
    for name in ("cut", "flipped"):
        with pytest.raises(DamagedFileError, match=f"weights/{name} is damaged"):
            store.load(paths[name])
    listed = {path.name: info for path, info in store.listing(RUN)}
    assert set(listed) == {"sound", "flipped"}
    store.delete(paths["cut"])
    assert store.load(paths["sound"])[0]["x"].tolist() == list(range(8))


def test_an_expired_checkpoint_cannot_be_loaded_and_leaves_the_list(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.save(
        PATH, {"x": torch.zeros(1)}, dataclasses.replace(INFO, ttl_seconds=3600), overwrite=False
    )
    (file,) = tmp_path.rglob("*.safetensors")
    past = time.time() - 3601
    os.utime(file, (past, past))
    with pytest.raises(UnknownResourceError, match="expired"):
        store.load(PATH)
    assert store.listing(RUN) == []
    assert not list(tmp_path.rglob("*.safetensors"))


def test_a_time_to_live_out_of_range_is_refused() -> None:
    for seconds in (-1, 3599, 10**10):
        with pytest.raises(BadRequestError, match=str(seconds)):
            checked_ttl(seconds)


@pytest.mark.parametrize(
    "uri",
    [
        "tinker://../../etc/weights/passwd",
        f"tinker://{RUN}/weights/..",
        f"tinker://{RUN}/weights/a b",
        f"tinker://{RUN}/weights/{'x' * 129}",
        f"tinker://{RUN}/other/name",
        f"tinker://{RUN}/weights",
        f"{RUN}/weights/name",
    ],
)
def test_a_path_that_is_none_is_refused_and_named(uri: str) -> None:
    with pytest.raises(BadRequestError, match="got "):
        CheckpointPath.parse(uri)


def test_a_copy_is_a_checkpoint_of_another_store(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    with pytest.raises(UnknownResourceError, match="step-1 does not exist"):
        copy_checkpoint(PATH.uri, here, there)
    theirs, store = CheckpointStore(there), CheckpointStore(here)
    store.save(PATH, {"x": torch.ones(2)}, INFO, overwrite=False)
    store.write_run(RUN, {"base_model": "model", "lora": {"rank": 4}})
    copy = CheckpointPath.parse(copy_checkpoint(PATH.uri, here, there))
    assert copy_checkpoint(PATH.uri, here, there) == copy.uri
    loaded, info = theirs.load(copy)
    assert info == INFO
    assert loaded["x"].tolist() == [1.0, 1.0]
    assert theirs.read_run(copy.run_id) == {**store.read_run(RUN), "training_run_id": copy.run_id}
    # Runs of equal seeds have equal ids: another one's checkpoint does not take the place.
    store.save(PATH, {"x": torch.zeros(2)}, INFO, overwrite=True)
    other = CheckpointPath.parse(copy_checkpoint(PATH.uri, here, there))
    assert theirs.load(copy)[0]["x"].tolist() == [1.0, 1.0]
    assert theirs.load(other)[0]["x"].tolist() == [0.0, 0.0]
    assert {path for path, _ in theirs.listing()} == {copy, other}
