"""Run a service in this process: logging, signals, the ready line and the parent process."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from typing import Any, TextIO

import torch
from aiohttp import web

from tokengym.agents.service.config import KEY_VARIABLE, ServiceConfig
from tokengym.agents.service.errors import StartupError
from tokengym.agents.service.http.app import build_app
from tokengym.agents.service.state.folder import own
from tokengym.agents.service.state.service import Service
from tokengym.loopback import is_loopback, local_address

PARENT_CHECK_S = 0.5
SHUTDOWN_S = 5.0
IDLE_S = 90.0
"""How long a connection without a request stays."""
NO_MEMORY = 3
"""Exit code of a service that ran out of memory."""

log = logging.getLogger(__name__)


def serve(
    config: ServiceConfig,
    *,
    log_level: str = "info",
    parent: int | None = None,
    ready: TextIO | None = None,
    show_key: bool = False,
) -> None:
    """Serve models over the Tinker protocol until SIGTERM or SIGINT.

    Once the service listens, it writes one line of JSON to `ready`:
    `{"event": "ready", "url": ..., "pid": ..., "models": [...], "precision": ..., "threads": ...}`,
    with `"api_key"` if `show_key`. Without a parent a second line sets the SDK's two variables.

    Args:
        config: the service's options.
        log_level: `debug`, `info`, `warning` or `error`.
        parent: the service stops when the process with this id ends; None for never.
        ready: where the ready line goes, standard output by default.
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
    with (
        own(config.state_dir),
        _listen(local_address(config.host), config.port) as listener,
    ):
        asyncio.run(_run(Service(config), listener, parent, ready or sys.stdout, key))


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
    service: Service,
    listener: socket.socket,
    parent: int | None,
    ready: TextIO,
    key: dict[str, str],
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
        handle_signals=False,
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
    ready.write(json.dumps(line) + "\n")
    if parent is None:
        shown = key.get("api_key", f"${KEY_VARIABLE}")
        ready.write(f"export TINKER_BASE_URL={url} TINKER_API_KEY={shown}\n")
    ready.flush()
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
