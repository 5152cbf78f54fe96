"""Applications of aiohttp served in a thread, and requests passed on to a service behind one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

from aiohttp import ClientSession, web

_SESSION = web.AppKey("session", ClientSession)


def answering(handle: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.Application:
    """Return an application that handles every request alike."""
    application = web.Application(client_max_size=2**30)
    application.router.add_route("*", "/{path:.*}", handle)
    return application


@contextmanager
def served(application: web.Application) -> Iterator[str]:
    """Serve on a free port of the loopback interface; yields the address."""
    loop, ready, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    address: list[str] = []

    async def session(application: web.Application) -> AsyncIterator[None]:
        async with ClientSession() as application[_SESSION]:
            yield

    async def serve() -> None:
        application.cleanup_ctx.append(session)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


async def pass_on(
    request: web.Request, service: str, change: Callable[[bytes, str], bytes] = lambda body, _: body
) -> web.Response:
    """Return what the service answers; both bodies are changed, by their content type."""
    headers = {k: v for k, v in request.headers.items() if k not in ("Host", "Content-Length")}
    body, where = change(await request.read(), request.content_type), service + request.path_qs
    asked = request.app[_SESSION].request(request.method, where, data=body, headers=headers)
    async with asked as answer:
        kept = {
            name: text
            for name, text in answer.headers.items()
            if name.lower() in ("content-type", "retry-after") or name.startswith("X-")
        }
        body = change(await answer.read(), answer.content_type)
        return web.Response(status=answer.status, body=body, headers=kept)
