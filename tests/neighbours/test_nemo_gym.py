"""Worlds in NeMo Gym: its server for OpenEnv environments, which constructs them by their name."""

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("nemo_gym", reason="needs nemo-gym, and Python 3.12")

from fastapi.testclient import TestClient
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient
from omegaconf import DictConfig
from resources_servers.openenv.app import OpenEnvResourcesServer, OpenEnvResourcesServerConfig

from tests.neighbours.reference import WORLDS, play_own

ADAPTER = "tokengym.agents.adapters.openenv"


def served(**reset: Any) -> TestClient:
    """Return a client of NeMo Gym's server, configured as its YAML does."""
    config = OpenEnvResourcesServerConfig(
        host="127.0.0.1",
        port=8000,
        entrypoint="app.py",
        name="openenv",
        env_class=f"{ADAPTER}.NamedWorldEnvironment",
        action_class=f"{ADAPTER}.ReplyAction",
        reset_kwargs=reset,
    )
    head = BaseServerConfig(host="127.0.0.1", port=8001)
    client = ServerClient(head_server_config=head, global_config_dict=DictConfig({}))
    server = OpenEnvResourcesServer(config=config, server_client=client)
    return TestClient(server.setup_webserver())


def verified(client: TestClient) -> float:
    """End a rollout; returns its reward."""
    response = {
        "id": "1",
        "created_at": 0,
        "model": "scripted",
        "object": "response",
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    ended = client.post(
        "/verify", json={"responses_create_params": {"input": []}, "response": response}
    )
    assert ended.status_code == 200, ended.text
    return float(ended.json()["reward"])


@pytest.mark.parametrize("world", WORLDS)
def test_a_rollout_of_nemo_gym_is_the_same_episode(
    world: str, shows: Callable[[str, str], None]
) -> None:
    own = play_own(world, index=2)
    client = served(world=world, split="test", index=2)
    assert client.post("/seed_session", json={}).status_code == 200
    answers = [client.post("/step", json={"text": reply}).json() for reply in own.replies]
    assert [answer["text"] for answer in answers] == own.texts[1:]
    assert [answer["reward"] for answer in answers] == own.rewards
    assert answers[-1]["done"]
    assert verified(client) == sum(own.rewards)
    shows("plays", world)


def test_level_and_options_are_named_too() -> None:
    own = play_own("forecast", "hard", label="expected")
    settings = {"label": "expected"}
    client = served(world="forecast", level="hard", settings=settings, split="test", index=0)
    client.post("/seed_session", json={})
    for reply in own.replies:
        client.post("/step", json={"text": reply})
    assert verified(client) == sum(own.rewards)
