"""Worlds in prime-rl: its own configuration, and an environment's server as it runs one."""

import asyncio
import multiprocessing
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("prime_rl.configs.rl", reason="needs prime-rl-configs, and Python 3.12")

import verifiers.v1 as vf
from prime_rl.configs.rl import RLConfig
from pydantic_config import cli
from verifiers.v1.serve import EnvClient, env_config_data, serve_env

from tests.docs.pages import ROOT
from tests.neighbours.reference import WORLDS, play_own, replies_by_text
from tests.neighbours.scripted_model import scripted_model
from tokengym.agents.adapters.verifiers_v1 import WorldEnvConfig
from tokengym.envs import make_world

EXAMPLE = ROOT / "examples" / "prime_rl" / "energy.toml"


def sources() -> tuple[Any, Any]:
    """Read the example as the command `rl` does; returns the sources of training and evaluation."""
    orchestrator = cli(RLConfig, args=["@", str(EXAMPLE)]).orchestrator
    (trained,), (evaluated,) = orchestrator.train.source, orchestrator.eval.source
    return trained, evaluated


def test_the_example_names_training_and_test_tasks() -> None:
    world = make_world("energy:small")
    for source, split, count in zip(sources(), ("train", "test"), (4096, 64), strict=True):
        assert isinstance(source.env, WorldEnvConfig)
        tasks = list(vf.load_taskset(source.env.taskset))  # as its orchestrator does
        assert len(tasks) == count
        assert tasks[-1].key == world.task(split, count - 1).fingerprint


@pytest.mark.parametrize("world", WORLDS)
def test_a_served_environment_plays_the_same_episode(
    world: str, shows: Callable[[str, str], None]
) -> None:
    own = play_own(world, index=1)
    answers = replies_by_text(own)
    _, source = sources()
    source.env.taskset = type(source.env.taskset)(id="tokengym-verifiers", world=world, tasks=2)
    spawning = multiprocessing.get_context("spawn")
    addresses = spawning.Queue()
    words: dict[str, Any] = {
        "max_workers": 1,
        "address": "tcp://127.0.0.1:0",
        "address_queue": addresses,
    }
    words["config_data"] = env_config_data(source.env)
    server = spawning.Process(target=serve_env, kwargs=words)
    server.start()

    async def play(url: str) -> list[Any]:
        client = EnvClient(address=addresses.get(timeout=120))
        await client.wait_for_server_startup(timeout=120)
        task = list(vf.load_taskset(source.env.taskset))[1]
        asked = {
            "client": vf.EvalClientConfig(base_url=url, api_key_var="UNSET"),
            "model": "scripted",
            "sampling": vf.SamplingConfig(),
            "task_data": task.data.model_dump(mode="json"),
        }
        return await asyncio.gather(*(client.run(**asked) for _ in range(3)))

    try:
        with scripted_model(lambda text: (answers[text], "stop")) as url:
            episodes = asyncio.run(play(url))
    finally:
        server.terminate()
        server.join()
    for episode in episodes:
        assert episode.ok, episode.errors
        (trace,) = episode.traces
        assert trace.rewards["return"].score == sum(own.rewards)
        shown = [message.content for message in trace.messages if message.role == "user"]
        assert shown == own.texts[:-1]
    shows("plays", world)
    shows("group", world)
