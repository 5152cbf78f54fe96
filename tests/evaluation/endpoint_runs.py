"""Evaluations of a test endpoint: one that fails now and then, and a command that is killed."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.evaluation.endpoint_server import Endpoint
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.run import run_evaluation
from tokengym.agents.reports.progress import StageProgress
from tokengym.agents.rollouts import RolloutRecord
from tokengym.envs import make_world

Answer = tuple[str | None, str, str | None]
FAULTS = ("", "hang", "drop", "refuse")
HASTY: dict[str, Any] = {"timeout": 1.0, "retries": 1}


def forecast(body: dict[str, Any]) -> Answer:
    return "Probability: 0.4", "stop", None


def faulty(tasks: int) -> Endpoint:
    """Return an endpoint to which every hundredth question is too much, hangs, or is dropped."""
    world = make_world("forecast")
    asked = [world.start(task).text for task in world.first_tasks("test", tasks)]
    faults = {asked[n]: FAULTS[n % 100] for n in range(tasks) if n % 100 < len(FAULTS)}

    def fault(body: dict[str, Any]) -> str:
        return faults.get(body["messages"][-1]["content"], "")

    def unless_refused(body: dict[str, Any]) -> str:
        return "" if fault(body) == "refuse" else fault(body)

    def rejects(body: dict[str, Any]) -> tuple[int, str] | None:
        return (400, "context of 8 tokens") if fault(body) == "refuse" else None

    return Endpoint(forecast, rejects=rejects, fault=unless_refused)


def run(
    endpoint: Endpoint,
    folder: Path,
    concurrency: int = 4,
    world: str = "forecast",
    progress: StageProgress = lambda *_: None,
    model: str = "some/model",
    **changes: Any,
) -> list[RolloutRecord]:
    """Evaluate the endpoint's model; returns its rollouts."""
    policy = f"openai:{model}@{endpoint.url}"
    settings = {"tasks": 6, "concurrency": concurrency, **changes}
    config = EvaluationConfig((world,), (policy,), **settings)
    run_evaluation(config, EvaluationFolder(folder), progress)
    return list(EvaluationFolder(folder).rollouts.read())


def results(folder: Path) -> dict[str, Any]:
    """Return the results of the evaluation's one policy."""
    (found,) = EvaluationFolder(folder).read()["results"]["policies"]
    return dict(found)


def digest(folder: Path) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in (folder / "rollouts").iterdir()}
    shown = json.dumps(EvaluationFolder(folder).read()["results"]).encode()
    return {**files, "results": shown}


def kill(endpoint: Endpoint, words: Sequence[str], folder: Path, answers: int) -> None:
    """Start the command, and kill it and its workers' parent after so many answers."""
    until = len(endpoint.asked) + answers
    command = [str(Path(sys.executable).parent / "tokengym"), *words]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        while len(endpoint.asked) < until:
            assert process.poll() is None
            time.sleep(0.002)
        process.kill()
