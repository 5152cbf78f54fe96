"""An endpoint that others wrote: `transformers serve` with the reference model."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokengym.agents.evaluation.config import EvaluationConfig, WorldLevel
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.evaluation.verify import replay
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs import Task, make_world

pytestmark = pytest.mark.reference_model

SERVE = "from transformers.cli.transformers import main; main()"
STARTS_WITHIN = 120.0
"""Seconds."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The address of a server, and its process."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-c", SERVE, "serve", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            assert process.poll() is None, (tmp_path / "serve.log").read_text()[-2000:]
            assert time.monotonic() < deadline
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except urllib.error.URLError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1", process
    finally:
        process.kill()
        process.wait()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_answers_of_a_server_that_dies_are_kept(
    served: tuple[str, subprocess.Popen[bytes]], reference_directory: Path, tmp_path: Path
) -> None:
    url, process = served
    config = EvaluationConfig(
        (WorldLevel.parse("forecast"),),
        (f"openai:{reference_directory}@{url}",),
        tasks=3,
        options={"prompt": "terse"},
        max_tokens=12,
    )
    folder = EvaluationFolder(tmp_path / "evaluation")

    def kill_half_way(what: str, done: int, total: int) -> None:
        if done == 2:
            process.kill()

    results = run_evaluation(config, folder, kill_half_way)
    *records, lost = folder.rollouts.read()
    assert [record.origin.group for record in records] == [0, 1]
    assert lost.failure is not None
    assert lost.failure.startswith("no connection: ")
    assert results.policies[0].lost == 1
    # Its rollout would be played again.
    with pytest.raises(EndpointError, match="Is a server running at http"):
        run_evaluation(config, folder)
    for record in records:
        (turn,) = record.turns
        assert turn.said
        assert turn.prompt_tokens
        assert turn.completion_tokens
        assert turn.complete == (turn.finish == "stop")
        assert replay(make_world("forecast", prompt="terse"), *_task(record)).total == record.total


def _task(record: RolloutRecord) -> tuple[Task, RolloutRecord]:
    return make_world(record.world, record.level).task(record.split, record.index), record
