"""A server between clients and a real service, which fails some requests as a hosted one may."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from tests.serving import answering, pass_on, served

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
            return await pass_on(request, self.service)
        self.failed[name] += 1
        assert request.transport is not None
        if how == "drop":
            request.transport.abort()
        while how == "hang" and not request.transport.is_closing():
            await asyncio.sleep(0.02)  # until the client goes
        status = how if isinstance(how, int) else 500
        return web.json_response({"detail": f"{name} failed on purpose"}, status=status)


@contextmanager
def failing(service: str, fault: Fault) -> Iterator[FaultyService]:
    """Serve what is at an address, but for some failures."""
    server = FaultyService(service, fault)
    with served(answering(server.handle)) as server.url:
        yield server
