"""A converted model is whole, or not there at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tokengym.agents.models import ModelError, ModelUnavailableError
from tokengym.agents.models.converted import converted, converted_folder, find_converted

WRITE = """
import os, sys, time
from tokengym.agents.models.converted import converted

def write(folder):
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
"""

pytestmark = pytest.mark.usefixtures("cache_home")


def write(folder: Path) -> None:
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")


def fail(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    raise ModelError("no")


def test_a_model_is_made_once_and_found_again(cache_home: Path) -> None:
    assert find_converted("tiny") is None
    directory = converted("tiny", write)
    assert directory == cache_home / "tokengym" / "models" / "tiny" == find_converted("tiny")
    assert converted("tiny", fail) == directory


def test_a_failure_half_way_leaves_nothing() -> None:
    with pytest.raises(ModelError):
        converted("tiny", fail)
    assert [path.name for path in converted_folder().iterdir()] == [".tiny.lock"]


@pytest.mark.nightly
def test_a_killed_process_leaves_nothing_that_stays() -> None:
    code = f"{WRITE}\n    os.kill(os.getpid(), 9)\nconverted('tiny', write)"
    done = subprocess.run([sys.executable, "-c", code], check=False)
    assert done.returncode == -9
    assert find_converted("tiny") is None
    converted("tiny", write)
    assert {path.name for path in converted_folder().iterdir()} == {".tiny.lock", "tiny"}


@pytest.mark.nightly
def test_two_processes_make_it_once(tmp_path: Path) -> None:
    code = (
        f"{WRITE}\n    open(sys.argv[1], 'a').write('made ')\n    time.sleep(1)\n"
        "print(converted('tiny', write))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {process.communicate()[0].strip() for process in both}
    assert printed == {str(find_converted("tiny"))}
    assert (tmp_path / "log").read_text() == "made "


def test_a_model_that_lacks_a_file_is_made_again() -> None:
    weights = converted("tiny", write) / "model.safetensors"
    weights.unlink()
    assert find_converted("tiny") is None
    converted("tiny", write)
    assert weights.is_file()


def test_a_full_disk_is_one_line() -> None:
    def full(folder: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(ModelUnavailableError, match="models': the disk is full"):
        converted("tiny", full)


def test_a_folder_that_cannot_be_written_is_one_line(cache_home: Path) -> None:
    cache_home.write_text("a file where the folder would be")
    with pytest.raises(ModelUnavailableError, match="cannot write models to"):
        converted("tiny", write)
