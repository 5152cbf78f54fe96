"""A small OpenAI-compatible server for tests: it answers from a script, and can fail."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.serving import served

PATIENCE = 10.0
"""Seconds that answers wait for other requests to come, where they do."""


@dataclass
class Endpoint:
    """What the server answers, and what it was asked.

    Attributes:
        answer: from the request to the message's text, the reason it ended, and the refusal.
        failures: statuses of the next requests that fail, in order.
        rejects: from the request to the status and message by which it is refused, if it is.
        refuses: a parameter that the server does not know.
        together: requests that must be under way at once before the first is answered.
        fault: from the request to how it goes wrong, if it does: `drop` closes the connection,
            `hang` never answers, and `break` answers with something else.
        body: from the request to the whole body of an answer, where that is not OpenAI's.
        models: names that the server lists.
        gives_up_after: number of answers after which every request is refused; `None` for never.
        asked: bodies of the requests that were answered.
        busiest: most requests that were under way at once.
        url: of the API.
    """

    answer: Callable[[dict[str, Any]], tuple[str | None, str, str | None]]
    failures: list[int] = field(default_factory=list)
    rejects: Callable[[dict[str, Any]], tuple[int, str] | None] = lambda body: None
    refuses: str = ""
    fault: Callable[[dict[str, Any]], str] = lambda body: ""
    body: Callable[[dict[str, Any]], bytes | None] = lambda body: None
    models: list[str] = field(default_factory=list)
    together: int = 1
    gives_up_after: int | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    busiest: int = 0
    url: str = ""
    _now: int = 0

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.failures:
            status = self.failures.pop(0)
            return web.json_response({"error": {}}, status=status, headers={"retry-after-ms": "1"})
        fault = self.fault(body)
        if fault == "drop":
            assert request.transport is not None
            request.transport.abort()
        while fault == "hang" and request.transport and not request.transport.is_closing():
            await asyncio.sleep(0.02)  # until the client goes
        if fault:
            return web.json_response({"choices": []})
        if rejected := self.rejects(body):
            status, reason = rejected
            return web.json_response({"error": {"message": reason}}, status=status)
        if self.refuses in body:
            wrong = f"use 'max_completion_tokens' instead of {self.refuses}"
            return web.json_response({"error": {"message": wrong}}, status=400)
        if self.gives_up_after is not None and len(self.asked) >= self.gives_up_after:
            return web.json_response({"error": {"message": "out of credit"}}, status=402)
        self.asked.append(body)
        self._now += 1
        self.busiest = max(self.busiest, self._now)
        waited = 0.0
        while self.busiest < self.together and waited < PATIENCE:
            await asyncio.sleep(0.001)
            waited += 0.001
        await asyncio.sleep(0)
        self._now -= 1
        if (whole := self.body(body)) is not None:
            return web.Response(body=whole, content_type="application/json")
        text, finish, refusal = self.answer(body)
        message = {"role": "assistant", "content": text, "refusal": refusal}
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": body["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {
                    "prompt_tokens": len(json.dumps(body["messages"])),
                    "completion_tokens": len(text or ""),
                    "total_tokens": 0,
                },
            }
        )

    async def list_models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": name} for name in self.models]})


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[Endpoint]:
    """Serve on a free port of the loopback interface, in a thread."""
    application = web.Application()
    application.router.add_post("/v1/chat/completions", endpoint.handle)
    application.router.add_get("/v1/models", endpoint.list_models)
    with served(application) as address:
        endpoint.url = f"{address}/v1"
        yield endpoint
