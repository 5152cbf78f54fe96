"""A server between clients and a real service, which fails some requests as a hosted one may."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

Fault = Callable[[str, int], int | str | None]
"""From the last part of a request's path, and how often it was asked for before, to what comes in
place of an answer: a status, `hang`, or `drop`; `None` for the service's answer."""


@dataclass
class FaultyService:
    """What the server fails, and what it was asked.

    Attributes:
        service: address of the service behind it.
        fault: which requests fail, and how.
        asked: requests by the last part of their path.
        failed: those of them that failed.
        url: its own address.
    """

    service: str
    fault: Fault
    asked: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        name = request.path.rpartition("/")[2]
        how = self.fault(name, self.asked[name])
        self.asked[name] += 1
        if how is None:
            return await self._forward(request)
        self.failed[name] += 1
        assert request.transport is not None
        if how == "drop":
            request.transport.abort()
        while how == "hang" and not request.transport.is_closing():
            await asyncio.sleep(0.02)  # until the client goes
        status = how if isinstance(how, int) else 500
        return web.json_response({"detail": f"{name} failed on purpose"}, status=status)

    async def _forward(self, request: web.Request) -> web.Response:
        headers = {name: text for name, text in request.headers.items() if name != "Host"}
        async with self._client.request(
            request.method,
            f"{self.service}{request.path_qs}",
            data=await request.read(),
            headers=headers,
        ) as answer:
            body = await answer.read()
            kept = {
                name: text
                for name, text in answer.headers.items()
                if name.lower() in ("content-type", "retry-after") or name.startswith("X-")
            }
            return web.Response(body=body, status=answer.status, headers=kept)

    async def open(self) -> web.AppRunner:
        self._client = aiohttp.ClientSession(auto_decompress=True)
        application = web.Application(client_max_size=2**30)
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


@contextmanager
def failing(service: str, fault: Fault) -> Iterator[FaultyService]:
    """Serve on a free port of the loopback interface, in a thread."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    server = FaultyService(service, fault)

    async def serve() -> None:
        runner = await server.open()
        ready.set()
        await stop.wait()
        await server._client.close()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
