"""A service starts with one ready line, ends in order, is missed when it dies, and comes back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import tinker
from tinker.types import AdamParams, ModelInput, SamplingParams

from tests.service.asking import TALK, datum
from tokengym.agents.service import LocalService, ServiceDiedError, StartupError, guard
from tokengym.agents.service.config import ServiceConfig
from tokengym.agents.service.engine.base_model import BaseModel, served_name
from tokengym.agents.service.errors import BadRequestError
from tokengym.agents.settings import OptionError

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = [sys.executable, "-m", "tokengym.agents.service"]


def _client(service: LocalService) -> Any:
    return tinker.ServiceClient(base_url=service.base_url, api_key=service.api_key)


def _logprobs(run: Any) -> list[float]:
    run.forward_backward([datum(TALK)], "cross_entropy").result()
    run.optim_step(AdamParams(learning_rate=1e-3)).result()
    output = run.forward([datum(TALK)], "cross_entropy").result().loss_fn_outputs[0]
    return list(output["logprobs"].to_numpy().tolist())


@pytest.mark.nightly
def test_state_survives_kill_and_a_service_started_anew(model_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    with LocalService(model_dir, state_dir=state, threads=1) as first:
        run = _client(first).create_lora_training_client(first.model_name, rank=4).result()
        expected = _logprobs(run)
        path = run.save_state("kept").result().path
        sampler_path = run.save_weights_for_sampler("kept").result().path
        os.kill(first.pid, signal.SIGKILL)
        _died(first)
        with pytest.raises(ServiceDiedError, match=r"signal 9; its log is .*service\.log"):
            first.raise_if_dead()

    with LocalService(model_dir, state_dir=state, threads=1) as second:
        client = _client(second)
        sampler = client.create_sampling_client(model_path=sampler_path).result()
        scored = sampler.compute_logprobs(ModelInput.from_ints(TALK)).result()
        assert scored[1:] == pytest.approx(expected, abs=1e-4)
        resumed = client.create_training_client_from_state_with_optimizer(path).result()
        assert resumed.get_info().lora_rank == 4
        rest = tinker.RestClient(base_url=second.base_url, api_key=second.api_key)
        found = rest.get_training_run_by_tinker_path(path).result()
        assert found.last_checkpoint.tinker_path == path


def _died(service: LocalService) -> None:
    while service.returncode is None:
        time.sleep(0.05)


ENDED = r"the local service at http://\S+ ended with signal 9; its log is \S+service\.log"
"""What a client is told: one sentence, in the SDK's own error."""


@pytest.mark.nightly
@pytest.mark.parametrize("guarded", [False, True])
def test_a_killed_service_ends_its_client_within_seconds(
    guarded: bool, model_dir: Path, tmp_path: Path
) -> None:
    with LocalService(model_dir, state_dir=tmp_path, threads=1) as service:
        client = _client(service)
        run = client.create_lora_training_client(service.model_name, rank=4).result()
        sampler = client.create_sampling_client(base_model=service.model_name).result()
        prompt, params = ModelInput.from_ints(TALK[:5]), SamplingParams(max_tokens=200, stop=[])

        async def rollouts() -> None:
            while True:
                await sampler.sample(prompt, 64, params)

        killed: list[float] = []

        def kill() -> None:
            os.kill(service.pid, signal.SIGKILL)
            killed.append(time.monotonic())

        threading.Timer(1.0, kill).start()
        if guarded:
            with pytest.raises(ServiceDiedError, match=ENDED) as caught:
                asyncio.run(guard(service, rollouts()))
            assert isinstance(caught.value, ConnectionError)
        else:
            with pytest.raises((ValueError, tinker.TinkerError), match=ENDED):
                asyncio.run(rollouts())
        assert time.monotonic() - killed[0] < 10
        # Nor does it try for minutes what it asks next.
        began = time.monotonic()
        with pytest.raises((ValueError, tinker.TinkerError), match=ENDED):
            run.save_state("lost").result()
        assert time.monotonic() - began < 10


@pytest.mark.nightly
def test_the_command_ends_in_order_on_sigterm(model_dir: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "TOKENGYM_SERVICE_KEY": ""}
    log = tmp_path / "log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [
                *(*COMMAND, "--model", str(model_dir), "--name", "mine"),
                *("--state-dir", f"{tmp_path}/s", "--host", "0.0.0.0"),
            ],
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )
    assert process.stdout is not None
    with process.stdout:
        ready = json.loads(process.stdout.readline())
        assert ready["event"] == "ready"
        assert ready["pid"] == process.pid
        assert ready["url"].startswith("http://0.0.0.0:")
        assert ready["models"] == [served_name(model_dir)]
        assert ready["api_key"].startswith("tml-")
        request = urllib.request.Request(
            f"{ready['url']}/api/v1/healthz", headers={"X-API-Key": ready["api_key"]}
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            assert json.loads(response.read()) == {"status": "ok"}
        request = urllib.request.Request(
            f"{ready['url']}/v1/completions",
            json.dumps({"model": "mine", "prompt": "a", "max_tokens": 1}).encode(),
            {"Authorization": f"Bearer {ready['api_key']}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert json.loads(response.read())["model"] == "mine"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        said = process.stdout.read().decode()
    assert said == f"export TINKER_BASE_URL={ready['url']} TINKER_API_KEY={ready['api_key']}\n"
    lines = log.read_text().splitlines()
    assert [line.rpartition(": ")[2] for line in lines][-2:] == ["stopping", "stopped"]
    assert "it listens to the network" in log.read_text()
    assert ready["api_key"] not in log.read_text()


@pytest.mark.nightly
def test_the_service_ends_with_the_process_that_started_it(model_dir: Path, tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time\n"
            "from tokengym.agents.service import LocalService\n"
            "service = LocalService(sys.argv[1], state_dir=sys.argv[2], threads=1)\n"
            "service.start()\n"
            "print(service.pid, flush=True)\n"
            "time.sleep(600)\n",
            str(model_dir),
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
    )
    assert starter.stdout is not None
    with starter.stdout:
        pid = int(starter.stdout.readline())
        os.kill(pid, 0)
        starter.kill()
        starter.wait()
    # A run resumed at once does not meet the service that is about to end.
    with LocalService(model_dir, state_dir=tmp_path, threads=1):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and _alive(pid):
            time.sleep(0.1)
        assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            # A zombie waits to be buried by whoever inherited it.
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    service = LocalService(tmp_path / "missing", state_dir=tmp_path / "state")
    with pytest.raises(StartupError, match=r"exit code 2.*must be a directory, got '.*missing'"):
        service.start()


def _spilled(state: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in state.rglob("unnamed/*/*")}


@pytest.mark.nightly
def test_a_state_directory_has_one_service(model_dir: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    prompt = ModelInput.from_ints(TALK)
    # Without memory all adapters but one are spilled.
    with LocalService(model_dir, state_dir=state, threads=1, memory=0.1) as first:
        run = _client(first).create_lora_training_client(first.model_name, rank=4).result()
        samplers = []
        for _ in range(10):
            _logprobs(run)
            samplers.append(run.save_weights_and_get_sampling_client().result())
        scores = samplers[0].compute_logprobs(prompt).result()
        assert (spilled := _spilled(state))
        second = LocalService(model_dir, state_dir=state, log_path=tmp_path / "second.log")
        with pytest.raises(StartupError, match="exit code 2") as caught:
            second.start()
        for said in (str(state), "in use by another", "--state-dir"):
            assert said in str(caught.value)
        assert _spilled(state) == spilled
        assert samplers[0].compute_logprobs(prompt).result() == scores


def test_a_start_on_an_address_in_use_touches_nothing(model_dir: Path, tmp_path: Path) -> None:
    left = tmp_path / "unnamed" / BaseModel(model_dir, "cpu").fingerprint / "0.safetensors"
    left.parent.mkdir(parents=True)
    left.touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        service = LocalService(model_dir, state_dir=tmp_path, port=port, seed=1)
        with pytest.raises(StartupError, match=rf"cannot listen on 127.0.0.1:{port}: .*in use"):
            service.start()
    assert left.exists()
    assert not (tmp_path / "starts").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"api_key": "secret-key"}, "must start with 'tml-'"),
        ({"api_key": "tml-x"}, "4 characters"),
        ({"port": 70000}, "--port must be .* at most 65535, got 70000"),
        ({"models": ()}, "at least one"),
        ({"names": ("one", "other")}, "each of 1 models at most one name"),
    ],
)
def test_a_bad_setting_is_refused_without_showing_the_key(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    good: dict[str, Any] = {"models": (tmp_path,), "state_dir": tmp_path, "api_key": "tml-abcdefgh"}
    ServiceConfig(**good)
    with pytest.raises(ValueError, match=said) as caught:
        ServiceConfig(**{**good, **change})
    assert "secret-key" not in str(caught.value)
    assert isinstance(caught.value, BadRequestError | OptionError)


@pytest.mark.parametrize("path", ["/tmp/x", "a/b/c", "/a/b/c/d", "model", "x/y"])
def test_the_sdk_finds_the_tokenizer_from_the_served_name(path: str) -> None:
    from pathlib import Path as AnyPath

    name = served_name(AnyPath(path))
    # With exactly two slashes the SDK would drop the last part.
    assert name.count("/") != 2
    assert os.path.normpath(name) == os.path.normpath(path)
