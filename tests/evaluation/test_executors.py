"""Laws of executors: results in order, errors come back, a death costs nothing that was saved."""

import os
import signal
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.evaluation.endpoint_server import Endpoint, serving
from tests.evaluation.studies import study_script
from tests.warm import CONTEXT
from tokengym.agents.cli import app
from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.play_missing import Progress
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.scripted import draw_tasks
from tokengym.agents.execution.executors import IN_PROCESS, Executor, Processes, WorkerError
from tokengym.envs import baselines, make_world
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


def die_once(folder: Path, number: int) -> int:
    """Be killed on the first try of 5."""
    if number == 5 and not (folder / "died").exists():
        (folder / "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def evaluate(
    policy: str,
    folder: Path,
    executor: Executor,
    world: str = "forecast",
    progress: Progress = lambda *_: None,
    **changes: Any,
) -> dict[str, bytes]:
    """Evaluate; returns every file that there is in the end."""
    config = EvaluationConfig(
        (WorldLevel.parse(world),), (policy,), **{"tasks": TASKS, "concurrency": 4, **changes}
    )
    run_evaluation(config, EvaluationFolder(folder), progress, executor=executor)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json*")}


@pytest.mark.nightly
@pytest.mark.parametrize("count", [0, 1, 9, 100])
def test_results_keep_the_order_of_the_items(two: Processes, count: int) -> None:
    expected = [number * number for number in range(count)]
    assert IN_PROCESS.map(squares, range(count)) == expected
    assert two.map(squares, range(count)) == expected


def test_shards_are_small_and_hold_every_item_once() -> None:
    for executor, largest in ((IN_PROCESS, 1024), (Processes(2, shard_size=7), 7)):
        ranges = executor.ranges(5000)
        assert [number for part in ranges for number in part] == list(range(5000))
        assert max(map(len, ranges)) == largest


def test_an_error_of_the_work_is_raised_here(two: Processes) -> None:
    with pytest.raises(OptionError, match="must not be 3"):
        list(two.run(refuse, range(6)))
    assert dict(two.run(refuse, range(3))) == {0: 0, 1: 1, 2: 2}


@pytest.mark.nightly
def test_a_killed_worker_loses_no_shard(two: Processes, tmp_path: Path) -> None:
    found = sorted(two.run(partial(die_once, tmp_path), range(9)))
    assert found == [(number, number) for number in range(9)]
    assert (tmp_path / "died").exists()


def square_elsewhere() -> None:
    Processes(2).map(squares, range(4))


@pytest.mark.nightly
def test_a_child_process_that_used_one_ends() -> None:
    child = CONTEXT.Process(target=square_elsewhere)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.nightly
def test_a_shard_that_kills_every_worker_ends_the_work(two: Processes) -> None:
    with pytest.raises(WorkerError, match="4 processes ended on one shard"):
        list(two.run(die, [1]))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("world", "tasks", "partitions"), [("forecast", TASKS, (1, 2, 7)), ("energy", 7, (7,))]
)
def test_every_partition_of_the_tasks_gives_the_same_files(
    tmp_path: Path, world: str, tasks: int, partitions: Sequence[int]
) -> None:
    asked: dict[str, Any] = {"world": world, "tasks": tasks, "rollouts": 2}
    whole = evaluate("noisy", tmp_path / "whole", IN_PROCESS, **asked)
    assert len(whole) == 2
    for shards in partitions:
        executor = Processes(min(2, shards), shard_size=-(-tasks // shards))
        assert len(executor.ranges(tasks)) == shards
        assert evaluate("noisy", tmp_path / str(shards), executor, **asked) == whole


@pytest.mark.nightly
def test_ties_are_those_of_one_process(two: Processes) -> None:
    world, rules = make_world("forecast"), baselines("forecast")
    tasks = draw_tasks(world, "test", 9, two)
    assert tasks == world.first_tasks("test", 9)
    one, other = (
        study_script(world, tasks, rules, "noisy", (2, 4), executor=executor)
        for executor in (IN_PROCESS, two)
    )
    assert one == other


@pytest.mark.nightly
def test_checks_are_those_of_one_process(tmp_path: Path) -> None:
    call = ["check", "forecast", "--level", "easy", "--level", "hard", "--tasks", "4"]
    for workers in ("1", "2"):
        out = ["--json", str(tmp_path / workers), "--workers", workers]
        result = CliRunner().invoke(app, [*call, *out])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.nightly
def test_a_killed_worker_loses_no_finished_rollout(two: Processes, tmp_path: Path) -> None:
    """Only what was under way in it, at most two conversations, is asked for again."""

    two.map(squares, range(8))  # both processes are started
    worker, once = next(iter(two._idle[-1]._processes.values())), threading.Lock()

    def answer(body: dict[str, Any]) -> tuple[str, str, None]:
        if len(endpoint.asked) >= TASKS // 2 and once.acquire(blocking=False):
            worker.kill()
        return "Probability: 0.4", "stop", None

    with serving(Endpoint(answer)) as endpoint:
        policy = f"openai:some/model@{endpoint.url}"
        killed = evaluate(policy, tmp_path / "killed", two)
        assert worker.exitcode == -signal.SIGKILL
        assert TASKS <= len(endpoint.asked) <= TASKS + 2
        assert killed == evaluate(policy, tmp_path / "whole", IN_PROCESS)
