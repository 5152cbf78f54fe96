"""What the system does to a run, a signal or a limit, ends it in a sentence and loses nothing."""

import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from tests.warm import start_tokengym
from tokengym.agents.training.folder.run import RunFolder

pytestmark = pytest.mark.nightly

SMALL = ["--groups", "2", "--group-size", "2", "--evaluation-tasks", "2", "--max-tokens", "16"]


def start_training(
    folder: Path, variables: Mapping[str, str], *arguments: str
) -> tuple[BaseProcess, Path]:
    """Start a training command in a folder; returns its process and the file it prints to."""
    printed = folder / "printed.txt"
    kept = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    return start_tokengym(arguments, folder, kept, printed), printed


def test_a_signal_ends_a_run_as_ctrl_c_does(tmp_path: Path) -> None:
    words = ["train", "forecast", *SMALL, "--steps", "500", "--run", "run"]
    process, printed = start_training(tmp_path, {"RLIMIT_NOFILE": "64"}, *words)
    run = RunFolder(tmp_path / "run")
    while process.is_alive() and not run.states():
        time.sleep(0.05)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join()
    shown = printed.read_text()
    assert process.exitcode == 130, shown
    *_, stopped, way_on = shown.splitlines()
    assert stopped == "stopped"
    saved = max(run.states())
    assert 1 <= saved < 500
    kept = f"The state after step {saved} is saved"
    assert way_on == f"{kept}; resume with: tokengym resume run"


def test_a_full_disk_leaves_no_half_written_file(tmp_path: Path) -> None:
    # No file may grow beyond three megabytes; weights for sampling have two, states five.
    words = ["train", "forecast", *SMALL, "--steps", "9", "--run", "run"]
    process, printed = start_training(tmp_path, {"RLIMIT_FSIZE": "3000000"}, *words)
    process.join()
    assert process.exitcode == 1
    lines = printed.read_text().splitlines()
    told = [line for line in lines if line.startswith("no checkpoint after step")]
    assert ["step 1," in told[0], "step 2," in told[1], len(told)] == [True, True, 2]
    assert not any(line.startswith("step 4/") for line in lines)
    assert "refused: Request failed: OSError: [Errno 27] File too large" in lines[-2]
    assert lines[-1] == "No step is saved yet; resume with: tokengym resume run"
    assert not any("Traceback" in line for line in lines)
    runs = tmp_path / "run" / "service" / "runs"
    assert [file for file in runs.rglob("*") if file.is_file() and "weights" in file.parts] == []
    process, printed = start_training(tmp_path, {}, "resume", "run")
    process.join()
    assert process.exitcode == 0, printed.read_text()
    assert RunFolder(tmp_path / "run").steps_done == 9


@pytest.mark.skipif(sys.platform != "linux", reason="the limit and what counts are Linux's")
def test_a_service_without_memory_ends_a_run_in_a_sentence(tmp_path: Path) -> None:
    # Enough to begin with; a step, or a state, takes more.
    words = ["train", "forecast", *SMALL, "--steps", "2", "--run", "run"]
    process, printed = start_training(tmp_path, {"SERVICE_ROOM": "80000000"}, *words)
    process.join(120)
    shown = printed.read_text()
    if hung := process.is_alive():
        process.kill()  # an endless test would name no reason
    assert not hung, shown
    assert process.exitcode == 1, shown
    assert "Traceback" not in shown
    *_, reason, way_on = shown.splitlines()
    assert re.search("the (local )?service (at .* )?(ended with|refused: )", reason), shown
    assert way_on.endswith("resume with: tokengym resume run")
    process, printed = start_training(tmp_path, {}, "resume", "run")
    process.join()
    assert process.exitcode == 0, printed.read_text()
    assert RunFolder(tmp_path / "run").steps_done == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT])
def test_a_run_whose_process_was_killed_resumes(tmp_path: Path, number: signal.Signals) -> None:
    # SIGKILL is how Linux ends a process for lack of memory, SIGABRT how native code ends itself.
    words = ["train", "forecast", *SMALL, "--steps", "500", "--run", "run"]
    process, printed = start_training(tmp_path, {}, *words)
    run = RunFolder(tmp_path / "run")
    while process.is_alive() and not run.states():
        time.sleep(0.05)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()
    assert process.exitcode == -number
    saved = max(run.states())
    process, printed = start_training(tmp_path, {}, "resume", "run", "--steps", str(saved + 1))
    process.join()
    assert process.exitcode == 0, printed.read_text()
    assert run.steps_done == saved + 1


@pytest.mark.parametrize("where", ["/proc/run", "/dev/null/run"])
def test_a_folder_that_cannot_be_made_is_no_run(tmp_path: Path, where: str) -> None:
    words = ["train", "forecast", *SMALL, "--run", where]
    process, printed = start_training(tmp_path, {}, *words)
    process.join()
    assert process.exitcode == 1
    *_, reason, way_on = printed.read_text().splitlines()
    assert reason.startswith(("/proc/run: ", "/dev/null/run: ", "/dev/null: "))
    assert way_on == "nothing was begun"
