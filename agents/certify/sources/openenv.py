"""Environments of OpenEnv, by the URL of a server or the folder of a package."""

import importlib
import json
import sys
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

import yaml
from fastapi.testclient import TestClient
from websockets.sync.client import connect

from tokengym.agents.certify.source import Facts, Source, SourceEpisode, SourceStep, TaskPlace
from tokengym.agents.certify.sources import MANY_TURNS, last_integer, package
from tokengym.envs.core.errors import OptionError

_NO_TEXT = ("metadata", "done", "reward", "stop_reason", "task_id", "role")


class OpenEnv(Source):
    """An environment; a Task is the seed of its reset.

    The server of a folder runs in this process, so that it needs no network.

    Args:
        where: `http://…`, which needs `--network`, or a folder with `openenv.yaml`.
        field: of the action that takes the reply, or its last integer, or 0 without one; if empty,
            the only one that an action needs.
        sessions: episodes at once that the server allows.
        **reset: further arguments of its reset.

    Raises:
        OptionError: if an action needs several fields, or none.
    """

    def __init__(self, where: str, field: str = "", sessions: int = 1, **reset: Any) -> None:
        self._reset = reset
        self._open, schema = _server(where) if "://" in where else _folder(Path(where))
        properties = schema["action"]["properties"]
        needed = schema["action"].get("required") or [
            name for name, kind in properties.items() if kind.get("type") == "string"
        ]
        if field not in properties and len(needed) != 1:
            raise OptionError(f"--option field=NAME names the part of an action, one of {needed}")
        self._field = field or needed[0]
        self._integer = properties[self._field].get("type") == "integer"
        self._sockets: deque[Any] = deque()
        self.facts = Facts(package=package("openenv"), turns=MANY_TURNS, sessions=sessions)

    def start(self, place: TaskPlace) -> SourceEpisode:
        """Reset over a connection of its own; the oldest is closed where there are too many."""
        if len(self._sockets) == self.facts.sessions:
            self._sockets.popleft().close()
        socket = self._open()
        self._sockets.append(socket)

        def ask(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
            socket.send(json.dumps({"type": kind, "data": data}))
            answer = json.loads(socket.recv())
            if answer["type"] != "observation":
                raise RuntimeError(str(answer["data"].get("message", answer["data"])))
            return cast("dict[str, Any]", answer["data"])

        def reply(text: str) -> SourceStep:
            said: Any = (last_integer(text) or 0) if self._integer else text
            answer = ask("step", {self._field: said})
            reward = 0.0 if answer["reward"] is None else answer["reward"]
            return SourceStep(reward, answer["done"], _text(answer["observation"]))

        begun = ask("reset", {"seed": place.index, **self._reset})
        return SourceEpisode(_text(begun["observation"]), reply)


class _Local:
    """A connection to an application in this process, with the calls of a real one."""

    def __init__(self, client: TestClient) -> None:
        self._session = client.websocket_connect("/ws")
        self._session.__enter__()
        self.send, self.recv = self._session.send_text, self._session.receive_text

    def close(self) -> None:
        """End the session."""
        self._session.__exit__(None, None, None)


def _server(url: str) -> tuple[Callable[[], Any], dict[str, Any]]:
    with urlopen(f"{url.rstrip('/')}/schema") as answer:
        schema = json.load(answer)
    socket = f"ws{url.rstrip('/').removeprefix('http')}/ws"
    return lambda: connect(socket, ping_interval=None).__enter__(), schema


def _folder(folder: Path) -> tuple[Callable[[], Any], dict[str, Any]]:
    said = yaml.safe_load((folder / "openenv.yaml").read_text(encoding="utf-8"))
    sys.path[:0] = [str(folder.resolve()), str(folder.resolve().parent)]
    module, _, name = said["app"].partition(":")
    client = TestClient(getattr(importlib.import_module(module), name))
    return lambda: _Local(client), client.get("/schema").json()


def _text(observation: Mapping[str, Any]) -> str:
    """Return the text of an observation, or all of it as JSON where it has several or none."""
    shown = {name: value for name, value in observation.items() if name not in _NO_TEXT}
    texts = [value for value in shown.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else json.dumps(shown)
