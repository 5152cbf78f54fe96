"""Connections that ask for nothing do not stay for ever."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from aiohttp import web

from tokengym.agents.service.http import connections
from tokengym.agents.service.http.connections import Connections


def test_strangers_go_soon_idle_clients_later_and_busy_ones_never() -> None:
    async def play() -> None:
        kept = Connections(stranger_s=10, idle_s=100, strangers=2)

        async def serve(request: web.BaseRequest) -> web.StreamResponse:
            with kept.serving(request.transport):
                return web.Response()

        runner = web.ServerRunner(web.Server(serve))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        client = await asyncio.open_connection(host, port)
        client[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await client[0].readline()).startswith(b"HTTP/1.1 200")
        assert runner.server is not None
        (served,) = (one.transport for one in runner.server.connections)
        # Half a request, as from a client that went away or means no good.
        strangers = [await asyncio.open_connection(host, port) for _ in range(3)]
        for _, writer in strangers:
            writer.write(b"GET / HTTP/1.1\r\nHost: ")
        while len(runner.server.connections) < 4:
            await asyncio.sleep(0.01)
        every = [one.transport for one in runner.server.connections if one.transport]
        now = asyncio.get_running_loop().time()
        # One more than there may be: the oldest goes at once.
        assert len(kept.overdue(every, now)) == 1
        assert served not in kept.overdue(every, now + 11)
        assert len(kept.overdue(every, now + 11)) == 3
        assert len(kept.overdue(every, now + 111)) == 4
        with kept.serving(served):
            assert served not in kept.overdue(every, now + 999)
        for _, writer in (client, *strangers):
            writer.close()
        await runner.cleanup()

    asyncio.run(play())


def test_a_connection_that_sends_half_a_request_is_ended(monkeypatch: Any) -> None:
    async def play() -> None:
        monkeypatch.setattr(connections, "CHECK_S", 0.01)

        async def serve(_request: web.BaseRequest) -> web.StreamResponse:
            return web.Response()

        runner = web.ServerRunner(web.Server(serve))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        assert runner.server is not None
        ending = asyncio.create_task(Connections(stranger_s=0.05).end_overdue(runner.server))
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        writer.write(b"GET / HTTP/1.1\r\nX-Slow: ")
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        ending.cancel()
        writer.close()
        await runner.cleanup()

    asyncio.run(play())
