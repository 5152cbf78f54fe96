"""A server of the protocol that can less than ours: it forwards, and leaves things out."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator, Sequence

from aiohttp import ClientSession, web


@contextlib.contextmanager
def serving_less(
    url: str, missing: Sequence[str] = (), without: Sequence[str] = ()
) -> Iterator[str]:
    """Serve what is at `url`, but for some routes and fields; yields the address.

    Args:
        url: of a service.
        missing: ends of paths that are not found.
        without: fields that are left out of JSON, in requests and in answers.
    """
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    def less(body: bytes, kind: str) -> bytes:
        if "json" not in kind or not any(name.encode() in body for name in without):
            return body
        content = json.loads(body)
        for part in (content, content.get("sampling_params", {})):
            for name in without:
                part.pop(name, None)
        return json.dumps(content).encode()

    async def forward(request: web.Request) -> web.Response:
        if request.path.endswith(tuple(missing) or "?"):
            raise web.HTTPNotFound
        kept = ("Content-Type", "X-API-Key")
        headers = {name: request.headers[name] for name in kept if name in request.headers}
        body = less(await request.read(), request.content_type)
        where = url + request.path_qs
        async with request.app[session].request(
            request.method, where, data=body, headers=headers
        ) as answer:
            return web.Response(
                status=answer.status,
                body=less(await answer.read(), answer.content_type),
                content_type=answer.content_type,
            )

    async def serve() -> None:
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", forward)
        async with ClientSession() as application[session]:
            runner = web.AppRunner(application)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            address.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
            ready.set()
            await stop.wait()
            await runner.cleanup()

    session = web.AppKey("session", ClientSession)
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
