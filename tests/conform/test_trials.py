"""A server is tried in order, and each wait for it is bounded."""

import asyncio
import contextlib
import io
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.training.faulty_service import failing
from tests.training.foreign import serving_less
from tests.warm import run_tokengym, start_tokengym
from tokengym.agents.cli import app
from tokengym.agents.conform.bench import TrialServer
from tokengym.agents.conform.trials import TRIALS, TrialFinding, require_server, try_server
from tokengym.agents.evaluation.experiment import run_experiment
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.agents.training.connection import Connection, ServiceRefusedError
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.progress import Progress

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = preset("forecast", steps=1, groups_per_batch=2, group_size=2, evaluation_tasks=2)


def found(url: str, wait: float = 60.0) -> tuple[dict[str, TrialFinding], list[str]]:
    """Return how each trial ended, and what was told."""
    told: list[str] = []
    rows = asyncio.run(try_server(TrialServer(url, ""), told.append, wait=wait))
    return {row.name: row for row in rows}, told


def typed(folder: Path, *words: str) -> tuple[int, str, float]:
    """Run the command in a process, which must end: its status, what it printed, and seconds.

    Imports, which take longer the busier the machine is, are behind it when it begins.
    """
    printed, environment = folder / "printed.txt", {**os.environ, "TINKER_API_KEY": "tml-none"}
    run_tokengym(["--help"], folder, environment, printed)
    began = time.monotonic()
    process = start_tokengym(words, folder, environment, printed)
    process.join(240)
    assert process.exitcode is not None
    return process.exitcode, printed.read_text(), time.monotonic() - began


@contextlib.contextmanager
def mute() -> Iterator[str]:
    """Listen, and never answer; yields the address."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_each_trial_builds_on_earlier_ones() -> None:
    names = [trial.name for trial in TRIALS]
    assert len({*names}) == len(names)
    for place, trial in enumerate(TRIALS):
        assert {*trial.needs} <= {*names[:place]}


@pytest.mark.nightly
def test_our_service_does_all_that_is_promised(served: dict[str, Any]) -> None:
    shown = CliRunner().invoke(app, ["conform", served["base_url"]])
    assert shown.exit_code == 0, shown.output
    assert f"{len(TRIALS) + 1} as promised, 0 not, 0 not tried" in shown.output
    rows = {line[:28].strip(): line for line in shown.output.splitlines()}
    assert "400 Bad Request from create_model" in rows["refuses an unknown model"]
    assert "rms" in rows["gap after steps"]
    assert "follows" in rows["distribution"]


@pytest.mark.nightly
def test_ignored_fields_and_absent_routes_are_found(served: dict[str, Any]) -> None:
    ignored = ["seed", "stop", "top_k", "prompt_logprobs"]
    with serving_less(served["base_url"], ["/ttl", "/unload_model"], ignored) as url:
        rows, told = found(url)
    lacking = {name for name, row in rows.items() if row.missing}
    assert lacking == {
        *("seed", "stop", "top_k", "compute_logprobs", "ttl_seconds", "resume", "unload_model")
    }
    assert told == [str(row) for row in rows.values()]
    assert rows["ttl_seconds"].status.startswith("404 Not Found")


@pytest.mark.nightly
def test_a_failing_route_is_told_and_given_up(served: dict[str, Any]) -> None:
    began = time.monotonic()
    with failing(served["base_url"], lambda name, _: 500 if name == "asample" else None) as server:
        rows, told = found(server.url)
    assert rows["samples"].missing == "3 times 500 Internal Server Error"
    assert told.count("  500 Internal Server Error from asample") == 3
    assert "seed" not in rows
    assert not rows["save_state"].missing
    assert time.monotonic() - began < 60


def test_a_run_stops_at_the_first_lack(served: dict[str, Any]) -> None:
    job = Job.resolve(replace(SMALL, **served))
    told: list[str] = []

    def fault(name: str, _: int) -> int | None:
        return 500 if name == "save_weights_for_sampler" else None

    with failing(served["base_url"], fault) as server:
        connection = Connection(job.target.model, server.url, None)
        with pytest.raises(ServiceRefusedError, match=r"weights for sampling \(3 times 500"):
            asyncio.run(require_server(job, connection, told.append))
        assert server.asked["unload_model"] == 1
        assert "asample" not in server.asked
    assert not any("loss ppo" in line or "delete" in line for line in told)


@pytest.mark.nightly
def test_a_run_names_the_field_that_is_missing(served: dict[str, Any], tmp_path: Path) -> None:
    shown = io.StringIO()
    with serving_less(served["base_url"], without=["sample_sequence_ids"]) as url:
        job = Job.resolve(replace(SMALL, **{**served, "base_url": url}))
        with pytest.raises(ServiceRefusedError, match=r"lacks.*samples \(.*sample_sequence_ids"):
            run_experiment(job, RunFolder(tmp_path / "run"), Progress(Console(file=shown)))
    assert "asample promises" in " ".join(shown.getvalue().split())
    assert not (tmp_path / "run" / "metrics.jsonl").exists()


@pytest.mark.nightly
def test_a_server_of_errors_is_refused_in_seconds(tmp_path: Path) -> None:
    with failing("", lambda *_: 500) as server:
        status, printed, seconds = typed(tmp_path, "conform", server.url)
    assert status == 1
    assert (
        "connection                   no  500 Internal Server Error from client/config" in printed
    )
    assert printed.count("  500 Internal Server Error from client/config\n") == 3
    assert f"0 as promised, 1 not, {len(TRIALS) - 1} not tried" in printed
    assert seconds < 60


@pytest.mark.nightly
def test_a_mute_server_is_given_up_in_time(tmp_path: Path) -> None:
    with mute() as url:
        status, printed, seconds = typed(tmp_path, "conform", url, "--wait", "2")
    assert status == 1
    assert "no answer in 2 s; nothing can be asked" in printed
    assert seconds < 60


@pytest.mark.nightly
def test_a_run_soon_refuses_a_useless_server(tmp_path: Path) -> None:
    with failing("", lambda *_: 500) as server:
        words = ["train", "forecast", "--base-url", server.url, "--model", str(MODEL_DIR)]
        status, printed, seconds = typed(tmp_path, *words, "--run", "run")
    assert status == 1
    reason = "connection (3 times 500 Internal Server Error)"
    assert f"lacks what the run needs: {reason}" in printed
    assert seconds < 60
