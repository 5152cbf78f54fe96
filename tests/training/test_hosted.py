"""A first run on a hosted service: what it shows, what it may use, and what the service may do."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from tests.training.faulty_service import Fault, failing
from tests.training.jobs import metrics, run_job
from tests.warm import run_tokengym
from tokengym.agents.cli import app
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.rollouts import train_segment
from tokengym.agents.training.connection import ServiceRefusedError
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.envs import Episode

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = preset("forecast", steps=3, groups_per_batch=2, group_size=2, evaluation_tasks=4)


@pytest.mark.nightly
def test_a_dry_run_shows_the_first_group(
    tmp_path: Path, served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["train", "forecast", "--steps", "1", "--evaluation-tasks", "2", "--seed", "3"]
    words += ["--model", served["model"], "--base-url", served["base_url"], "--groups", "2"]
    words += ["--option", "prompt=terse", "--max-tokens", "12"]
    prices = ["--price-read", "1", "--price-written", "10", "--price-trained", "100"]
    shown = CliRunner().invoke(app, [*words, "--dry-run", *prices], catch_exceptions=False)
    assert shown.exit_code == 0
    assert list(tmp_path.iterdir()) == []
    run = CliRunner().invoke(app, [*words, "--run", "run", "--yes"], catch_exceptions=False)
    assert run.exit_code == 0, run.output
    first = RunFolder(Path("run"))
    records = [r for r in first.rollouts.read(train_segment(0)) if r.origin.group == 0]
    assert len(records) == 8
    rewards = " ".join(f"{record.total:.4f}" for record in records)
    assert f"One group of 8: rewards {rewards}\n" in shown.output
    job = Job.resolve(first.config)
    episode = Episode(job.world, job.world.task("train", job.first_task), job.codec)
    prompt = job.codec.tokenizer.decode(episode.observation)  # type: ignore[attr-defined]
    assert f"as the model reads it ({len(episode.observation)} tokens):\n{prompt}\n" in shown.output
    formed = sum(not record.malformed for record in records) / 8
    assert f"{formed:.0%} of 8 replies are well-formed" in shown.output
    (numbers,) = re.findall(
        r"about ([\d,]+) tokens read, ([\d,]+) sampled, ([\d,]+) trained on", shown.output
    )
    read, sampled, trained = (int(number.replace(",", "")) for number in numbers)
    turns = [turn for record in records for turn in record.own_turns]
    rollouts = 16 + 2 * 2  # before and after
    assert read == rollouts * sum(turn.prompt_tokens or 0 for turn in turns) // 8
    assert sampled == rollouts * sum(turn.completion_tokens or 0 for turn in turns) // 8
    both = sum((turn.prompt_tokens or 0) + (turn.completion_tokens or 0) for turn in turns)
    assert trained == 16 * both // 8
    assert f"cost: about ${(read + 10 * sampled + 100 * trained) / 1e6:,.2f}" in shown.output


@pytest.mark.nightly
def test_rate_limits_time_outs_and_lost_connections_cost_time_alone(
    tmp_path: Path, served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The SDK waits a minute for an answer; here a second.
    monkeypatch.setattr("tinker._base_client.DEFAULT_TIMEOUT", httpx.Timeout(1.0))
    faults: dict[str, list[int | str]] = {
        "asample": [429, 429, "hang", 504, "drop"],
        "forward_backward": [429],
        "optim_step": [429],
        "retrieve_future": ["drop", 429, 503],
        "save_weights_for_sampler": ["drop"],
    }

    def fault(name: str, before: int) -> int | str | None:
        return dict(enumerate(faults.get(name, []))).get(before)

    settings = replace(SMALL, **served, steps=1, evaluation_tasks=2)
    with failing(served["base_url"], fault) as service:
        run_job(replace(settings, base_url=service.url), tmp_path)
    assert service.failed == {name: len(kinds) for name, kinds in faults.items()}
    assert len(metrics(tmp_path)) == 1
    (found,) = read_trained(RunFolder(tmp_path)).values()
    assert found.after.result.tasks == 2


def expired(name: str, status: int, place: int = 0) -> Fault:
    return lambda asked, before: status if asked == name and before >= place else None


@pytest.mark.nightly
@pytest.mark.parametrize(
    "fault",
    [expired("asample", 404), expired("retrieve_future", 404), expired("forward_backward", 404)],
    ids=["sampler", "result", "training run"],
)
def test_what_has_expired_is_said_in_a_sentence(
    tmp_path: Path, served: dict[str, Any], fault: Fault
) -> None:
    settings = replace(SMALL, **served, evaluation_tasks=2)
    with failing(served["base_url"], fault) as service, pytest.raises(ServiceRefusedError) as said:
        run_job(replace(settings, base_url=service.url), tmp_path)
    assert "failed on purpose" in str(said.value)
    assert "request_id" not in str(said.value)


@pytest.mark.nightly
def test_a_run_whose_sampler_expired_can_be_resumed(tmp_path: Path, served: dict[str, Any]) -> None:
    words = ["train", "forecast", "--model", served["model"], "--option", "prompt=terse"]
    words += ["--steps", "2", "--groups", "2", "--group-size", "2", "--evaluation-tasks", "2"]
    words += ["--max-tokens", "12", "--run", "run", "--yes"]
    printed, variables = tmp_path / "printed.txt", {**os.environ, "OMP_NUM_THREADS": "1"}
    stepped = tmp_path / "run" / "metrics.jsonl"

    def fault(name: str, before: int) -> int | None:
        return 410 if name == "asample" and stepped.exists() else None  # in the second step

    with failing(served["base_url"], fault) as service:
        words += ["--base-url", service.url]
        status = run_tokengym(words, tmp_path, variables, printed)
        shown = printed.read_text()
        assert status == 1, shown
        assert "Traceback" not in shown, shown
        *_, reason, way_on = shown.splitlines()
        assert reason.startswith(f"the service at {service.url} refused: ")
        assert way_on.endswith("resume with: tokengym resume run")
        service.fault = lambda name, before: None
        status = run_tokengym(["resume", "run", "--yes"], tmp_path, variables, printed)
    assert status == 0, printed.read_text()
    assert [row["step"] for row in metrics(tmp_path / "run")] == [0, 1]
