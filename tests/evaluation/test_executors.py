"""Laws of executors: results in order, errors come back, a death costs nothing that was saved."""

import os
import signal
from collections.abc import Sequence
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.warm import CONTEXT
from tokengym.agents.cli import app
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.execution.executors import IN_PROCESS, Executor, Processes, WorkerError
from tokengym.agents.reports.progress import StageProgress
from tokengym.envs.core.errors import OptionError

TASKS = 40


@pytest.fixture(scope="module")
def two() -> Processes:
    """Two processes, which all tests share."""
    return Processes(2)


def squares(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


def refuse(number: int) -> int:
    if number == 3:
        raise OptionError("a number must not be 3")
    return number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def evaluate(
    policy: str,
    folder: Path,
    executor: Executor,
    world: str = "forecast",
    progress: StageProgress = lambda *_: None,
    **changes: Any,
) -> dict[str, bytes]:
    """Evaluate; returns every file that there is in the end."""
    config = EvaluationConfig((world,), (policy,), **{"tasks": TASKS, "concurrency": 4, **changes})
    run_evaluation(config, EvaluationFolder(folder), progress, executor=executor)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json*")}


@pytest.mark.nightly
@pytest.mark.parametrize("count", [0, 1, 9, 100])
def test_results_keep_the_order_of_the_items(two: Processes, count: int) -> None:
    expected = [number * number for number in range(count)]
    assert IN_PROCESS.map(squares, range(count)) == expected
    assert two.map(squares, range(count)) == expected


def test_shards_are_small_and_hold_every_item_once() -> None:
    for executor, largest in ((IN_PROCESS, 1024), (Processes(2), 625)):
        ranges = executor.ranges(5000)
        assert [number for part in ranges for number in part] == list(range(5000))
        assert max(map(len, ranges)) == largest


@pytest.mark.nightly
def test_an_error_of_the_work_is_raised_here(two: Processes) -> None:
    with pytest.raises(OptionError, match="must not be 3"):
        list(two.run(refuse, range(6)))
    assert dict(two.run(refuse, range(3))) == {0: 0, 1: 1, 2: 2}


def square_elsewhere() -> None:
    Processes(2).map(squares, range(4))


@pytest.mark.nightly
def test_a_child_process_that_used_one_ends() -> None:
    child = CONTEXT.Process(target=square_elsewhere)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.nightly
def test_a_worker_that_dies_ends_the_work_in_one_sentence(two: Processes) -> None:
    with pytest.raises(WorkerError, match="a worker was killed"):
        list(two.run(die, range(4)))
    assert two.map(squares, range(9)) == squares(range(9))


@pytest.mark.nightly
@pytest.mark.parametrize(("world", "tasks"), [("forecast", TASKS), ("energy", 7)])
def test_two_processes_write_the_files_of_one(
    two: Processes, tmp_path: Path, world: str, tasks: int
) -> None:
    asked: dict[str, Any] = {"world": world, "tasks": tasks, "rollouts": 3}
    whole = evaluate("noisy", tmp_path / "whole", IN_PROCESS, **asked)
    assert len(whole) == 2
    assert evaluate("noisy", tmp_path / "two", two, **asked) == whole


@pytest.mark.nightly
def test_checks_are_those_of_one_process(tmp_path: Path) -> None:
    call = ["check", "forecast", "--level", "easy", "--level", "hard", "--tasks", "4"]
    for workers in ("1", "2"):
        out = ["--json", str(tmp_path / workers), "--workers", workers]
        result = CliRunner().invoke(app, [*call, *out])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.nightly
def test_after_a_killed_worker_the_same_command_goes_on(two: Processes, tmp_path: Path) -> None:
    def kill_one(what: str, done: int, total: int) -> None:
        if done:
            active_children()[0].kill()

    with pytest.raises(WorkerError):
        evaluate("noisy", tmp_path / "killed", two, progress=kill_one, rollouts=2)
    left = list(EvaluationFolder(tmp_path / "killed").rollouts.read())
    assert 0 < len(left) < 2 * TASKS
    whole = evaluate("noisy", tmp_path / "whole", IN_PROCESS, rollouts=2)
    assert evaluate("noisy", tmp_path / "killed", two, rollouts=2) == whole
