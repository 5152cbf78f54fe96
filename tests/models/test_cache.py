"""A model in the cache is whole, as its manifest says, or not there at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokengym.agents.models import ModelError, ModelUnavailableError
from tokengym.agents.models.cache import ModelSource, build, cache_folder, entries, find

ORIGIN = ModelSource("a test", "0" * 64)


def write(folder: Path) -> ModelSource:
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(bytes(1000))
    return ORIGIN


pytestmark = pytest.mark.usefixtures("cache_home")


def test_a_model_is_made_once_and_found_again(cache_home: Path) -> None:
    assert find("tiny") is None
    directory = build("tiny", write)
    assert directory == cache_home / "tokengym" / "models" / "tiny"
    assert find("tiny", verify=True, sha256=ORIGIN.sha256) == directory
    assert find("tiny", sha256="1" * 64) is None
    assert build("tiny", _fail) == directory
    (entry,) = entries(verify=True)
    assert (entry.key, entry.directory, entry.origin, entry.intact) == (
        "tiny",
        directory,
        ORIGIN,
        True,
    )
    assert entry.size > 1000


def _fail(folder: Path) -> ModelSource:
    (folder / "config.json").write_text("{}")
    raise ModelError("no")


def test_what_fails_half_way_leaves_nothing() -> None:
    with pytest.raises(ModelError):
        build("tiny", _fail)
    assert find("tiny") is None
    assert entries() == []
    assert [path.name for path in cache_folder().iterdir()] == [".tiny.lock"]


@pytest.mark.nightly
def test_a_killed_process_leaves_nothing_that_stays(cache_home: Path) -> None:
    code = (
        "import os, pathlib\n"
        "from tokengym.agents.models.cache import build\n"
        "def write(folder):\n"
        "    (folder / 'config.json').write_text('{}')\n"
        "    os.kill(os.getpid(), 9)\n"
        "build('tiny', write)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert find("tiny") is None
    assert entries() == []
    build("tiny", write)
    assert {path.name for path in cache_folder().iterdir()} == {".tiny.lock", "tiny"}


@pytest.mark.nightly
def test_two_processes_make_it_once(cache_home: Path) -> None:
    code = (
        "import pathlib, sys, time\n"
        "from tokengym.agents.models.cache import ModelSource, build\n"
        "def write(folder):\n"
        "    with open(sys.argv[1], 'a') as log: log.write('made ')\n"
        "    (folder / 'config.json').write_text('{}')\n"
        "    time.sleep(1)\n"
        "    return ModelSource('a test', '')\n"
        "print(build('tiny', write))\n"
    )
    log = cache_home.parent / "log"
    command = [sys.executable, "-c", code, str(log)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate()[0].strip() for process in both}
    assert printed == {str(find("tiny"))}
    assert log.read_text() == "made "


@pytest.mark.parametrize("damage", ["short", "flipped", "missing", "manifest", "old"])
def test_a_damaged_model_is_seen_and_made_anew(damage: str) -> None:
    directory = build("tiny", write)
    weights, manifest = directory / "model.safetensors", directory / "tokengym.json"
    match damage:
        case "short":
            weights.write_bytes(bytes(999))
        case "flipped":
            weights.write_bytes(bytes(999) + b"\1")
        case "missing":
            weights.unlink()
        case "manifest":
            manifest.write_text("{")
        case "old":
            manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 0'))
    assert find("tiny", verify=True) is None
    # Sizes are compared always, contents only when asked.
    assert (find("tiny") == directory) == (damage == "flipped")
    assert [entry.intact for entry in entries(verify=True)] == [False]
    build("tiny", write, verify=True)
    assert find("tiny", verify=True) == directory
    assert weights.read_bytes() == bytes(1000)


def test_a_full_disk_is_one_line() -> None:
    def full(folder: Path) -> ModelSource:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ModelUnavailableError, match="models': the disk is full"):
        build("tiny", full)


def test_a_cache_that_cannot_be_written_is_one_line(cache_home: Path) -> None:
    cache_home.write_text("a file where the folder would be")
    with pytest.raises(ModelUnavailableError, match="cannot write models to"):
        build("tiny", write)
