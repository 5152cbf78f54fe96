"""Run a service in this process: the HTTP application, signals, the ready line and the parent.

The application has the route table, access checks and error responses.
"""

import asyncio
import hmac
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import pydantic
import torch
from aiohttp import web

from tokengym.agents.service.config import KEY_VARIABLE, ServiceConfig
from tokengym.agents.service.errors import ServiceError, StartupError
from tokengym.agents.service.http import openai_routes, tinker_routes
from tokengym.agents.service.http.chat_format import ChatFormat
from tokengym.agents.service.http.json_api import SERVICE, error_response, respond, unknown_route
from tokengym.agents.service.state.folder import own
from tokengym.agents.service.state.service import Service
from tokengym.loopback import foreign_site, is_loopback, local_address

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

PARENT_CHECK_S = 0.5
SHUTDOWN_S = 5.0
IDLE_S = 90.0
"""How long a connection without a request stays."""
NO_MEMORY = 3
"""Exit code of a service that ran out of memory."""
SESSION_CHECK_S = 10.0
MAX_FAULTS = 1000
KEY_HEADER = "X-API-Key"

log = logging.getLogger(__name__)


def serve(
    config: ServiceConfig,
    *,
    log_level: str = "info",
    parent: int | None = None,
    show_key: bool = False,
) -> None:
    """Serve models over the Tinker protocol until SIGTERM or SIGINT.

    Once the service listens, it writes one line of JSON to standard output:
    `{"event": "ready", "url": ..., "pid": ..., "models": [...], "precision": ..., "threads": ...}`,
    with `"api_key"` if `show_key`. Without a parent a second line sets the SDK's two variables.

    Args:
        config: the service's options.
        log_level: `debug`, `info`, `warning` or `error`.
        parent: the service stops when the process with this id ends; None for never.
        show_key: whether the ready line shows the API key.

    Raises:
        ModelDirectoryError: if a directory does not hold a causal language model.
        StartupError: if another service has the state directory or the address.
    """
    set_up_logging(log_level)
    if config.threads:
        torch.set_num_threads(config.threads)
    key = {"api_key": config.api_key} if show_key else {}
    # Both are taken before anything in the directory is read or cleared away.
    with own(config.state_dir), _listen(local_address(config.host), config.port) as listener:
        asyncio.run(_run(Service(config), listener, parent, key))


def _listen(host: str, port: int) -> socket.socket:
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = places[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise StartupError(f"cannot listen on {host}:{port}: {error}") from error


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _run(
    service: Service, listener: socket.socket, parent: int | None, key: dict[str, str]
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_end_without_memory)
    for number in (signal.SIGTERM, signal.SIGINT):
        # Not the loop's own handlers, which Windows lacks.
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    runner = web.AppRunner(
        build_app(service),
        access_log=None,
        shutdown_timeout=SHUTDOWN_S,
        keepalive_timeout=IDLE_S,
        handler_cancellation=True,
        # A small body may become a large one, which even a stranger's request would wait for.
        auto_decompress=False,
    )
    await runner.setup()
    await web.SockSite(runner, listener).start()
    url, names = _url(listener), [model.name for model in service.models]
    line = {
        "event": "ready",
        "url": url,
        "pid": os.getpid(),
        "models": names,
        "precision": service.models[0].base_model.precision,
        "threads": torch.get_num_threads(),
        **key,
    }
    print(json.dumps(line))
    if parent is None:
        shown = key.get("api_key", f"${KEY_VARIABLE}")
        print(f"export TINKER_BASE_URL={url} TINKER_API_KEY={shown}")
    sys.stdout.flush()
    log.info("serving %s at %s", ", ".join(names), url)
    if not is_loopback(service.config.host):
        log.warning("it listens to the network: whoever has the key can use it")
    watch = asyncio.create_task(_stop_with_parent(parent, stop))
    await stop.wait()
    log.info("stopping")
    watch.cancel()
    await runner.cleanup()
    log.info("stopped")


def _end_without_memory(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """End a service that lacks the memory to read a request: its clients would retry forever."""
    if isinstance(context.get("exception"), MemoryError):
        # Nothing that needs memory; saved states are whole.
        os.write(2, b"the service has run out of memory and ends\n")
        os._exit(NO_MEMORY)
    loop.default_exception_handler(context)


async def _stop_with_parent(parent: int | None, stop: asyncio.Event) -> None:
    # A killed parent cannot stop its child, which the system then gives to another process.
    while parent is not None:
        if os.getppid() != parent:
            log.warning("process %d, which started this service, has ended", parent)
            stop.set()
            return
        await asyncio.sleep(PARENT_CHECK_S)


def set_up_logging(level: str) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("tokengym.agents.service")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False


def build_app(service: Service) -> web.Application:
    """Build the application; it starts and stops the service's compute thread."""
    app = web.Application(middlewares=[_handle_errors, _check_access])
    app[SERVICE] = service
    app[openai_routes.FORMATS] = {
        model.name: ChatFormat(model.base_model.tokenizer) for model in service.models
    }
    for method, path, handler in tinker_routes.ROUTES:
        app.router.add_route(method, f"/api/v1/{path}", partial(respond, handler))
    for method, path, handler in openai_routes.ROUTES:
        app.router.add_route(method, f"/v1/{path}", partial(respond, handler))
    app.router.add_route("*", "/{tail:.*}", unknown_route)
    app.cleanup_ctx.append(_lifetime)
    return app


async def _lifetime(app: web.Application) -> AsyncIterator[None]:
    service = app[SERVICE]
    service.start()
    reaper = asyncio.create_task(_end_silent_sessions(service))
    yield
    reaper.cancel()
    await asyncio.to_thread(service.stop)


async def _end_silent_sessions(service: Service) -> None:
    while True:
        await asyncio.sleep(SESSION_CHECK_S)
        await service.end_silent_sessions()


@web.middleware
async def _handle_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    start = time.perf_counter()
    try:
        response = await handler(request)
    except ServiceError as error:
        response = error_response(error.status, str(error))
    except pydantic.ValidationError as error:
        if (faults := error.error_count()) > MAX_FAULTS:  # each would be described
            return error_response(422, f"body must have at most {MAX_FAULTS} faults, got {faults}")
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        response = error_response(422, f"{where}: {first['msg']}, got {first['input']!r}")
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        response = error_response(400, f"body must be JSON: {error}")
    except web.HTTPException as error:
        response = error_response(error.status, error.reason)
    except Exception as error:
        if request.transport is None or request.transport.is_closing():
            log.debug("%s %s: the client has gone", request.method, request.path)
            return web.Response()
        log.exception("%s %s failed", request.method, request.path)
        # 422 and not 500: the SDK would repeat the request for minutes, to the same end.
        response = error_response(422, f"internal error: {type(error).__name__}: {error}")
    elapsed = 1000 * (time.perf_counter() - start)
    log.debug("%s %s %d %.1f ms", request.method, request.path, response.status, elapsed)
    return response


@web.middleware
async def _check_access(request: web.Request, handler: Handler) -> web.StreamResponse:
    headers, config = request.headers, request.app[SERVICE].config
    reason = foreign_site(config.host, headers.get("Host"), headers.get("Origin"))
    if reason is not None:
        raise web.HTTPForbidden(reason=reason)
    # OpenAI's clients send the key as a bearer's.
    kind, _, bearer = headers.get("Authorization", "").partition(" ")
    key = headers.get(KEY_HEADER) or (bearer.strip() if kind.lower() == "bearer" else "")
    # aiohttp keeps bytes that are not UTF-8 as surrogates.
    if not hmac.compare_digest(key.encode(errors="surrogateescape"), config.api_key.encode()):
        given = "another one" if key else "none"
        raise web.HTTPUnauthorized(
            reason=f"{KEY_HEADER} must be the key this service was started with, got {given}"
        )
    return await handler(request)
