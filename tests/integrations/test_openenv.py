"""Worlds behind an OpenEnv server, as retrain and other clients of its wire format see them."""

import asyncio
import contextlib
import gc
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs the extra `openenv`")

import uvicorn
import websockets
from fastapi import FastAPI
from openenv import GenericEnvClient
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.mcp_client import MCPToolClient

from tests.integrations.commands import OPTIONS, PLAYED, TASKS, Served
from tests.integrations.reference import (
    DESKS,
    LEVELS,
    SPLITS,
    TOOLS,
    WORLDS,
    play_called,
    play_own,
    task_of,
)
from tokengym.agents.adapters.openenv import ReplyAction, WorldEnvironment, build_app
from tokengym.envs import Rollout, Rollouts, make_world

SESSIONS = 64


@contextlib.contextmanager
def served(rollouts: Any, sessions: int = SESSIONS) -> Iterator[str]:
    """Serve a world, or an app of one, in a thread; yields `host:port`."""
    app = rollouts
    if not isinstance(rollouts, FastAPI):
        app = build_app(rollouts, sessions=sessions)
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
def test_a_client_of_the_wire_plays_the_same_episode(
    world: str, shows: Callable[[str, str], None]
) -> None:
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
    shows("plays", world)
    shows("group", world)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("world", "level"), LEVELS)
def test_every_level_is_reset_and_stepped_in_process(world: str, level: str, split: str) -> None:
    environment = WorldEnvironment(Rollouts(world, level))
    observation = environment.reset(split=split, index=0)
    assert observation.task_id == task_of(world, level, split).fingerprint
    while not observation.done:
        observation = environment.step(ReplyAction(text="", metadata={"finish_reason": "length"}))
        assert observation.reward is not None


@pytest.mark.parametrize("level", DESKS)
def test_calls_and_lines_play_the_same_episode(
    level: str, shows: Callable[[str, str], None]
) -> None:
    called = play_called(level, index=3)

    async def play(address: str) -> None:
        async with GenericEnvClient(base_url=f"http://{address}") as client:
            result = await client.reset(split="test", index=3)
            assert result.observation["text"] == called.played.texts[0]
            for count, message in enumerate(called.messages):
                action = {"text": message["content"]}
                if calls := message.get("tool_calls"):
                    function = calls[0]["function"]
                    action |= {"type": "call_tool", "tool_name": function["name"]}
                    action |= {"arguments": function["arguments"]}  # JSON, once broken
                result = await client.step(action)
                seen = result.observation
                text = seen["result" if calls else "text"]
                assert (text, result.reward) == (
                    called.played.texts[count + 1],
                    called.played.rewards[count],
                )
            assert result.done
            assert (await client.state())["total_reward"] == sum(called.played.rewards)
            await client.reset()
            with pytest.raises(RuntimeError, match="VALIDATION_ERROR"):
                await client.step({"arguments": {}})
            assert (await client.state())["step_count"] == 0

    with served(f"forecast:{level}") as address:
        asyncio.run(play(address))
    shows("tools", level)


@pytest.mark.parametrize("level", DESKS)
def test_mcp_clients_list_and_call_an_episodes_tools(level: str) -> None:
    world = make_world("forecast", level)
    calls: list[tuple[str, dict[str, Any]]] = [("open", {"note": n}) for n in (3, 1, 3, 99)]
    calls += [("open", {}), ("shut", {}), ("answer", {"probability": 0.3})]

    async def play(address: str) -> None:
        async with MCPToolClient(base_url=f"http://{address}") as client:
            functions = [tool["function"] for tool in TOOLS[level]]
            stepped = (await client.step(ListToolsAction())).observation
            for tools in (await client.list_tools(), stepped.tools):
                assert [tool.model_dump() for tool in tools] == [
                    {
                        **{"name": one["name"], "description": one["description"]},
                        "input_schema": one["parameters"],
                    }
                    for one in functions
                ]
            turn = world.start(world.task("test", 1))
            result = await client.reset(split="test", index=1)
            assert result.observation.text == turn.text
            for count, (name, arguments) in enumerate(calls):
                written = ", ".join(f"{key}={value}" for key, value in arguments.items())
                turn = world.reply(f"{name}({written})")
                if count % 2 == 0:  # over HTTP, where there are no rewards
                    assert await client.call_tool(name, **arguments) == turn.text
                    continue
                result = await client.step(CallToolAction(tool_name=name, arguments=arguments))
                assert result.observation.result == turn.text
                assert result.reward == turn.rewards["forecaster"]
                assert result.done == turn.done
            assert turn.done
            with pytest.raises(RuntimeError, match="over"):
                await client.call_tool("open", note=1)
            assert (await client.state()).step_count == len(calls)

    with served(f"forecast:{level}") as address:
        asyncio.run(play(address))


@pytest.mark.parametrize("world", WORLDS)
def test_many_clients_play_and_dropped_ones_free_worlds(world: str) -> None:
    owns = [play_own(world, index=index) for index in range(4)]

    async def play(address: str) -> None:
        url = f"ws://{address}/ws"
        async with contextlib.AsyncExitStack() as open_sockets:
            sockets = [
                await open_sockets.enter_async_context(connect(url)) for _ in range(SESSIONS)
            ]

            async def episode(socket: Any, index: int) -> None:
                await ask(socket, "reset", split="test", index=index)
                for reply, reward in zip(owns[index].replies, owns[index].rewards, strict=True):
                    assert (await ask(socket, "step", text=reply))["reward"] == reward

            await asyncio.gather(*(episode(s, i % len(owns)) for i, s in enumerate(sockets)))
            assert live_rollouts() == SESSIONS
            async with connect(url) as refused:
                assert json.loads(await refused.recv())["data"]["code"] == "CAPACITY_REACHED"
            sockets[0].transport.abort()  # a client that dies sends no closing frame
            for _ in range(200):
                if live_rollouts() < SESSIONS:
                    break
                await asyncio.sleep(0.02)
            assert live_rollouts() == SESSIONS - 1
            async with connect(url) as welcome:
                await ask(welcome, "reset")

    with served(world) as address:
        asyncio.run(play(address))


def live_rollouts() -> int:
    gc.collect()
    return sum(isinstance(one, Rollout) for one in gc.get_objects())


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


@pytest.mark.parametrize(
    ("kind", "data", "wrong"),
    [
        ("reset", {"split": "exam"}, "exam"),
        ("reset", {"level": "pick"}, "level"),
        ("step", {"text": "BATTERY 1"}, "reset"),
    ],
)
def test_a_wrong_message_is_answered_and_the_session_goes_on(
    kind: str, data: dict[str, Any], wrong: str
) -> None:
    async def play(address: str) -> None:
        async with connect(f"ws://{address}/ws") as socket:
            await socket.send(json.dumps({"type": kind, "data": data}))
            answer = json.loads(await socket.recv())
            assert answer["type"] == "error"
            assert wrong in answer["data"]["message"]
            assert await ask(socket, "reset", seed=1)

    with served("energy") as address:
        asyncio.run(play(address))


def test_a_page_of_another_site_gets_no_session() -> None:
    async def play(address: str) -> None:
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "http://["}):
            with pytest.raises(websockets.InvalidStatus, match="403"):
                await websockets.connect(f"ws://{address}/ws", additional_headers=headers)
        async with connect(f"ws://{address}/ws") as own:
            assert (await ask(own, "reset", index=0))["observation"]["text"]

    with served("forecast", sessions=1) as address:
        asyncio.run(play(address))
        for name, value in (("Host", "evil.example"), ("Origin", "null")):
            request = urllib.request.Request(f"http://{address}/health", headers={name: value})
            with pytest.raises(urllib.error.HTTPError, match="403") as caught:
                urllib.request.urlopen(request, timeout=20)
            with caught.value as error:
                assert repr(value) in json.loads(error.read())["detail"]


def test_a_server_with_a_key_answers_only_who_has_it() -> None:
    async def play(address: str, headers: dict[str, str]) -> str:
        async with websockets.connect(
            f"ws://{address}/ws", additional_headers=headers, ping_interval=None
        ) as own:
            return str((await ask(own, "reset", index=0))["observation"]["text"])

    with served(build_app("forecast", key="tml-secret")) as address:
        for headers in ({}, {"Authorization": "Bearer tml-other"}):
            with pytest.raises(websockets.InvalidStatus, match="403"):
                asyncio.run(play(address, headers))
            request = urllib.request.Request(f"http://{address}/health", headers=headers)
            with pytest.raises(urllib.error.HTTPError, match="403") as caught:
                urllib.request.urlopen(request, timeout=20)
            with caught.value as error:
                assert "Authorization: Bearer KEY" in json.loads(error.read())["detail"]
        assert asyncio.run(play(address, {"Authorization": "Bearer tml-secret"}))


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("reset", {"split": "../x"}, "'../x'"),
        ("reset", {"split": "test", "index": -1}, "index"),
        ("reset", {"nonsense": 1}, "nonsense"),
        ("step", {"action": {"text": "0.5"}}, "reset"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_a_sentence(
    path: str, body: dict[str, Any], said: str
) -> None:
    with served("forecast") as address:
        with pytest.raises(urllib.error.HTTPError, match="400") as caught:
            get(address, f"/{path}", body)
        with caught.value as error:
            assert said in json.loads(error.read())["detail"]


@pytest.mark.parametrize("played", PLAYED)
def test_the_own_client_finds_what_our_evaluation_found(
    played: str, shows: Callable[[str, str], None]
) -> None:
    policy = Served()

    async def play(address: str, index: int) -> float:
        messages, total = [], 0.0
        async with GenericEnvClient(base_url=f"http://{address}") as client:
            result = await client.reset(split="test", index=index)
            while not result.done:
                messages.append({"role": "user", "content": result.observation["text"]})
                reply, reason = await asyncio.to_thread(policy.reply, messages)
                messages.append({"role": "assistant", "content": reply})
                result = await client.step({"text": reply, "metadata": {"finish_reason": reason}})
                total += result.reward or 0.0
        return total

    with served({"world": played, **OPTIONS}) as address:
        totals = [asyncio.run(play(address, index)) for index in range(TASKS)]
    assert totals == policy.returns(played)
    shows("own command", f"GenericEnvClient: {played}")


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    def http_response(self, request: Any, response: Any) -> Any:
        return response


ODD = ("NaN", "-Infinity", "1e400", "9" * 5000, "[]", r'"\ud800"', "{")
SHAPES = {
    "reset": ('{"seed": %s}', "%s"),
    "step": ('{"action": {"text": %s}}', '{"timeout_s": %s}'),
}


@pytest.mark.parametrize("path", SHAPES)
def test_numbers_that_json_has_not_are_refused_in_a_sentence(path: str) -> None:
    with served("forecast") as address:
        for body in (shape % odd for shape in SHAPES[path] for odd in ODD):
            asked = urllib.request.Request(f"http://{address}/{path}", body.encode())
            asked.add_header("Content-Type", "application/json")
            with urllib.request.build_opener(_AnyStatus).open(asked) as answer:
                assert (answer.status < 500, type(json.load(answer)["detail"])) == (True, str)
