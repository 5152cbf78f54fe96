"""Laws of a training job: its run folder, modes, resume, death of the service, collapse."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import tinker
from filelock import FileLock
from typer.testing import CliRunner

from tests.training.folders import differences, digests, drop_unfinished, platform_class
from tests.training.foreign import serving_less
from tests.training.jobs import run_job
from tokengym.agents.cli import app
from tokengym.agents.evaluation.trained import read_trained
from tokengym.agents.evaluation.verify import verify_run
from tokengym.agents.service import ServiceDiedError
from tokengym.agents.training import policy_trainer
from tokengym.agents.training.config import SftConfig
from tokengym.agents.training.connection import KEY_VARIABLE
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.presets import preset, preset_for
from tokengym.envs.core.errors import OptionError

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = preset("forecast", steps=3, groups_per_batch=2, group_size=2, evaluation_tasks=8)
REPEATABLE = replace(SMALL, steps=8, deterministic=True)
GOLDEN = Path(__file__).parents[1] / "golden" / "runs.json"


@pytest.fixture(scope="module")
def connections() -> Iterator[list[Any]]:
    """Addresses that this process looks up and connects to from now on."""
    found: list[Any] = []
    noting = [True]

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if noting and event in ("socket.connect", "socket.getaddrinfo"):
            found.append(arguments[1] if event == "socket.connect" else arguments[:2])

    # A hook cannot be removed.
    sys.addaudithook(note)
    yield found
    noting.clear()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, connections: list[Any]) -> Path:
    """A run that is bitwise equal wherever sums are rounded alike."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(KEY_VARIABLE, raising=False)
        run_job(REPEATABLE, folder)
    return folder


def steps(folder: Path) -> list[int]:
    return [row.step for row in RunFolder(folder).steps()]


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_job_leaves_a_run_folder_that_holds_it_all(
    tmp_path: Path, served: dict[str, Any], mode: str
) -> None:
    settings = replace(SMALL, **served, mode=mode)  # type: ignore[arg-type]
    outcome, shown = run_job(settings, tmp_path)
    assert steps(tmp_path) == [0, 1, 2]
    assert "step 3/3" in shown
    assert "tied pairs" in shown
    assert outcome.collapse is None
    (found,) = read_trained(RunFolder(tmp_path)).values()
    result = found.after.result
    conditions = result.prompt, result.max_tokens, result.temperature
    assert result.tasks == 8
    assert conditions == (settings.options["prompt"], settings.max_tokens, 1.0)
    assert found.after.table.stops.total() == 8
    assert RunFolder(tmp_path).config == replace(settings, renderer="qwen3_instruct", system="")
    assert RunFolder(tmp_path).outcome == outcome
    assert verify_run(RunFolder(tmp_path)).differences == []
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"config.json", "metrics.jsonl", "checkpoints.jsonl", "report.html"}
    loss = "ppo" if mode == "async" else "importance_sampling"
    assert json.loads((tmp_path / "config.json").read_text())["loss_fn"] == loss
    page = (tmp_path / "report.html").read_text()
    assert "oracle" in page
    assert "after training" in page
    assert os.environ[KEY_VARIABLE] not in page
    last = json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[-1])
    assert "env/all/reward_tie_pair_rate" in last


@pytest.mark.nightly
@pytest.mark.parametrize("ended", [True, False], ids=["ended", "killed"])
def test_rolling_checkpoints_after_the_final_one_are_not_resumed(
    tmp_path: Path, served: dict[str, Any], *, ended: bool
) -> None:
    settings = replace(SMALL, **served)
    run_job(settings, tmp_path)
    if not ended:
        (tmp_path / "outcome.json").unlink()
    # The trainer deletes its rolling checkpoints, but may write the record of the last one late.
    path = tmp_path / "checkpoints.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    final = next(row for row in rows if row["name"] == "final")
    gone = {"name": "000003", "batch": final["batch"], "rolling": True}
    gone["state_path"] = final["state_path"].replace("final", "000003")
    with path.open("a") as file:
        file.write(json.dumps(gone) + "\n")
    run_job(replace(settings, steps=4), tmp_path)
    assert steps(tmp_path) == [0, 1, 2, 3]


@pytest.mark.nightly
def test_a_run_resumes_from_the_last_state_still_there(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    settings = replace(SMALL, **served, evaluation_tasks=2, save_every=1)
    run_job(settings, tmp_path)
    (tmp_path / "outcome.json").unlink()
    states = tmp_path / "checkpoints.jsonl"
    kept = json.loads(states.read_text().splitlines()[0])
    gone = {**kept, "name": "gone", "batch": 3, "state_path": f"{kept['state_path']}-gone"}
    assert kept["batch"] == 1
    logged = (tmp_path / "metrics.jsonl").read_text()

    states.write_text(json.dumps(gone) + "\n")
    with pytest.raises(OptionError, match=r"has no state of .* saved after step 3"):
        run_job(settings, tmp_path)
    assert states.read_text() == json.dumps(gone) + "\n"
    assert (tmp_path / "metrics.jsonl").read_text() == logged

    states.write_text(json.dumps(kept) + "\n" + json.dumps(gone) + "\n")
    _, shown = run_job(settings, tmp_path)
    assert "the service no longer has the state after step 3" in shown
    assert "2 steps were completed but not saved: resuming from step 1" in shown
    assert steps(tmp_path) == [0, 1, 2]


@pytest.mark.nightly
def test_killed_after_its_last_step_a_run_saves_its_weights(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    settings = replace(SMALL, **served, save_every=1)
    run_job(settings, tmp_path)
    folder = RunFolder(tmp_path)
    whole, (before,) = folder.checkpoints(), read_trained(folder).values()
    assert [row["name"] for row in whole] == ["000001", "000002", "000003", "final"]
    (tmp_path / "outcome.json").unlink()
    folder.forget_checkpoints_after(2)
    with (tmp_path / "checkpoints.jsonl").open("a") as file:
        file.write(json.dumps(whole[2]) + "\n")
    run_job(settings, tmp_path)
    *_, last, final = folder.checkpoints()
    assert (last["name"], final["name"], final["batch"]) == ("000003", "final", 3)
    assert folder.weights.sampler == final["sampler_path"]
    (again,) = read_trained(folder).values()
    assert again.after.paid_T == before.after.paid_T


@pytest.mark.skipif(find_spec("wandb") is not None, reason="wandb is installed")
def test_weights_and_biases_needs_its_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)  # as if it were not installed
    folder = tmp_path / "run"
    for settings in (SMALL, preset_for(SftConfig, "forecast")):
        with pytest.raises(OptionError, match=r"pip install 'tokengym\[wandb\]'"):
            run_job(replace(settings, wandb="mine"), folder)
        assert not folder.exists()


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path) -> None:
    with FileLock(tmp_path / "run.lock"), pytest.raises(OptionError, match="another process"):
        run_job(SMALL, tmp_path)
    assert not RunFolder(tmp_path).exists


@pytest.mark.nightly
def test_a_run_survives_the_death_of_its_service(tmp_path: Path, whole: Path) -> None:
    killed = tmp_path / "run"

    def kill_after_some_steps() -> None:
        log = killed / "service" / "service.log"
        while len(steps(killed)) < 2:
            time.sleep(0.02)
        assert log.read_text()
        # The service is whoever writes its errors to the log.
        for entry in Path("/proc").glob("[0-9]*/fd/2"):
            with contextlib.suppress(OSError):  # the process ended meanwhile
                if entry.readlink() == log:
                    os.kill(int(entry.parts[2]), signal.SIGKILL)

    killer = threading.Thread(target=kill_after_some_steps)
    killer.start()
    with pytest.raises(ServiceDiedError, match="signal 9"):
        run_job(REPEATABLE, killed)
    killer.join()
    kept = steps(killed)
    assert 2 <= len(kept) < 8
    run_job(REPEATABLE, killed)
    assert steps(killed) == list(range(8))
    drop_unfinished(killed)
    assert differences(whole, killed) == []


def test_a_run_equals_the_golden_one_of_its_platform(whole: Path) -> None:
    """`TOKENGYM_UPDATE_GOLDEN=1` records the hashes of this class."""
    golden, name = json.loads(GOLDEN.read_text()), platform_class(whole)
    if os.environ.get("TOKENGYM_UPDATE_GOLDEN"):
        golden[name] = digests(whole)
        GOLDEN.write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")
    if name not in golden:
        pytest.skip(f"no golden run of {name}")
    assert digests(whole) == golden[name]


def test_a_job_connects_to_nothing_but_its_own_service(whole: Path, connections: list[Any]) -> None:
    hosts = {address[0] for address in connections if isinstance(address, tuple)}
    assert hosts
    assert hosts <= {"127.0.0.1", "localhost", b"127.0.0.1", b"localhost"}


@pytest.mark.nightly
def test_a_run_without_signal_keeps_its_last_good_checkpoint(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    # Replies of one token are never a forecast: every group is uniform from the first step on.
    settings = replace(SMALL, **served, steps=30, max_tokens=1, evaluate_before=0)
    outcome, _ = run_job(settings, tmp_path)
    assert outcome.collapse is not None
    assert outcome.collapse.since == 0
    assert len(steps(tmp_path)) < 30
    assert "Collapsed at step 0" in (tmp_path / "report.html").read_text()


@pytest.mark.nightly
@pytest.mark.parametrize("tasks", [8, 16])
def test_a_policy_that_never_answers_in_form_is_not_trained(
    tmp_path: Path, served: dict[str, Any], tasks: int
) -> None:
    asked = replace(SMALL, **served, steps=1, max_tokens=1, evaluation_tasks=tasks)
    refused = pytest.raises(OptionError, match="no reply before training has the form")
    with refused if tasks == 16 else contextlib.nullcontext():  # 8 replies are too few to tell
        run_job(asked, tmp_path)


@pytest.mark.nightly
def test_services_may_lack_the_route_that_ends_sessions(
    tmp_path: Path, served: dict[str, Any]
) -> None:
    options = "--steps 1 --groups 2 --group-size 2 --evaluation-tasks 2 --yes"
    with serving_less(served["base_url"], missing=["/finish"]) as url:
        typed = ["train", "forecast", "--base-url", url, "--model", served["model"]]
        ended = CliRunner().invoke(app, [*typed, *options.split(), "--run", str(tmp_path / "run")])
    assert ended.exit_code == 0, ended.output
    run = RunFolder(tmp_path / "run")
    before = run.outcome
    assert before is not None
    again = CliRunner().invoke(app, ["resume", str(run.folder)])
    assert again.exit_code == 0, again.output
    assert "is finished: 1 of 1 steps; --steps" in again.output
    assert run.outcome == before


def test_a_key_and_the_starting_policy_do_not_go_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "tml-none")
    with pytest.raises(OptionError, match="knows a model by its own name"):
        run_job(SMALL, tmp_path)


def test_a_client_that_never_closes_holds_no_finished_run_up(
    served: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    closing: list[str] = []

    def close(client: tinker.ServiceClient, status: str) -> asyncio.Future[None]:
        closing.append(status)
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(tinker.ServiceClient, "close", close)
    monkeypatch.setattr(policy_trainer, "_CLOSING_SECONDS", 0.05)

    async def work() -> None:
        async with policy_trainer.service_session(served["base_url"]):
            pass

    asyncio.run(work())
    assert closing == ["success"]
