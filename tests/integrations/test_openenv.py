"""Worlds behind an OpenEnv server, as retrain and other clients of its wire format see them."""

import asyncio
import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`")

import uvicorn
import websockets

from tests.integrations.reference import WORLDS, play_own, task_of
from tokengym.agents.adapters.openenv import build_app


@contextlib.contextmanager
def served(rollouts: Any, **settings: Any) -> Iterator[str]:
    """Serve a world in a thread; yields `host:port`."""
    app = build_app(rollouts, **settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws_ping_interval=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def connect(url: str) -> Any:
    """Open a connection that does not take a busy machine for a dead one."""
    return websockets.connect(url, ping_interval=None)


async def ask(socket: Any, kind: str, **data: Any) -> dict[str, Any]:
    """Send one message of the wire format and return the data of the answer."""
    await socket.send(json.dumps({"type": kind, "data": data}))
    answer = json.loads(await socket.recv())
    assert answer["type"] == "observation", answer
    return answer["data"]


def get(address: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """GET a path, or POST a body to it."""
    sent = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://{address}{path}", sent, headers)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)


@pytest.mark.parametrize("world", WORLDS)
def test_a_client_of_the_wire_plays_the_same_episode(world: str) -> None:
    own = play_own(world, index=2)

    async def play(address: str) -> None:
        schema = get(address, "/schema")["action"]
        (field,) = schema["required"]
        assert schema["properties"][field]["type"] == "string"
        async with connect(f"ws://{address}/ws") as socket:
            data = await ask(socket, "reset", split="test", index=2)
            texts, rewards = [data["observation"]["text"]], []
            assert data["reward"] is None
            for reply in own.replies:
                assert not data["done"]
                data = await ask(socket, "step", **{field: reply})
                texts.append(data["observation"]["text"])
                rewards.append(data["reward"])
                assert sum(data["metadata"]["terms"].values()) == rewards[-1]
            assert data["done"]
            assert data["observation"]["stop_reason"]
            assert data["observation"]["task_id"] == own.task_id
            assert (texts, rewards) == (own.texts, own.rewards)
            again = await ask(socket, "reset", split="test", index=2)  # a group on one Task
            assert again["observation"] == {**again["observation"], "task_id": own.task_id}
            for reply, reward in zip(own.replies, own.rewards, strict=True):
                assert (await ask(socket, "step", **{field: reply}))["reward"] == reward
            await socket.send(json.dumps({"type": "state"}))
            state = json.loads(await socket.recv())["data"]
            assert state["total_reward"] == sum(own.rewards)
            assert (state["split"], state["index"]) == ("test", 2)

    with served(world) as address:
        asyncio.run(play(address))


def test_seeds_splits_and_indices_name_the_same_task() -> None:
    async def resets(address: str, *asked: dict[str, Any]) -> list[str]:
        async with connect(f"ws://{address}/ws") as socket:
            return [
                (await ask(socket, "reset", **data))["observation"]["task_id"] for data in asked
            ]

    with served("warehouse") as address:
        same, again, other, third = asyncio.run(
            resets(address, {"seed": 3}, {"seed": 3}, {"seed": 4}, {"split": "test", "index": 0})
        )
        assert same == again != other
        assert third == task_of("warehouse").fingerprint
        assert get(address, "/list_environments") == ["warehouse"]
        splits = get(address, "/warehouse/splits")
        assert [split["name"] for split in splits] == ["train", "validation", "test"]
        assert get(address, "/warehouse/num_tasks", {"split": "test"})["num_tasks"] == 2**31
        one = get(address, "/warehouse/task", {"split": "test", "index": 0})["task"]
        assert one["id"] == third
        some = {"split": "test", "start": 5, "stop": 7}
        (first, _) = get(address, "/warehouse/task_range", some)["tasks"]
        assert first == {"split": "test", "index": 5}
        assert len(get(address, "/warehouse/tasks", {"split": "test"})["tasks"]) == 100
        with pytest.raises(urllib.error.HTTPError, match="400"):
            get(address, "/warehouse/task", {"split": "test", "index": -1})


def test_other_sites_and_who_lacks_the_key_are_refused() -> None:
    named = {"Authorization": "Bearer tml-secret"}
    with served("forecast", key="tml-secret") as address:

        async def play(headers: dict[str, str]) -> str:
            async with websockets.connect(
                f"ws://{address}/ws", additional_headers=headers, ping_interval=None
            ) as own:
                return str((await ask(own, "reset", index=0))["observation"]["text"])

        for headers, said in (
            ({}, "Authorization: Bearer KEY"),
            ({"Authorization": "Bearer tml-other"}, "Authorization: Bearer KEY"),
            ({**named, "Origin": "https://evil.example"}, "'https://evil.example'"),
        ):
            with pytest.raises(websockets.InvalidStatus, match="403"):
                asyncio.run(play(headers))
            request = urllib.request.Request(f"http://{address}/health", headers=headers)
            with pytest.raises(urllib.error.HTTPError, match="403") as caught:
                urllib.request.urlopen(request, timeout=20)
            with caught.value as error:
                assert said in json.loads(error.read())["detail"]
        assert asyncio.run(play(named))


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("reset", {"split": "../x"}, 400, "'../x'"),
        ("reset", {"split": "test", "index": -1}, 400, "index"),
        ("reset", {"nonsense": 1}, 400, "nonsense"),
        ("reset", {"seed": float("nan")}, 422, "got nan"),
        ("step", {"action": {"text": "0.5"}}, 400, "reset"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_a_sentence(
    path: str, body: dict[str, Any], status: int, said: str
) -> None:
    with served("forecast") as address:
        with pytest.raises(urllib.error.HTTPError, match=str(status)) as caught:
            get(address, f"/{path}", body)
        with caught.value as error:
            assert said in json.loads(error.read())["detail"]
