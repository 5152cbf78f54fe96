"""Run a service in this process: logging, signals, the ready line and the parent it depends on."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import torch
from aiohttp import web

from tokengym.agents.service.app import build_app
from tokengym.agents.service.service import Service
from tokengym.agents.service.settings import KEY_PREFIX, Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

KEY_VARIABLE = "TOKENGYM_SERVICE_KEY"
PARENT_CHECK_S = 0.5
SHUTDOWN_S = 5.0

log = logging.getLogger(__name__)


def serve(
    models: Sequence[str | Path],
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    state_dir: str | Path = "tinker-service",
    api_key: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    threads: int = 0,
    max_body_bytes: int = 64 << 20,
    log_level: str = "info",
    parent: int | None = None,
    ready: TextIO | None = None,
) -> None:
    """Serve models over the Tinker protocol until SIGTERM or SIGINT.

    When it listens, one line of JSON is written to `ready` (standard output by default):
    `{"event": "ready", "url": ..., "pid": ..., "models": [...]}`, with `"api_key"` if none was
    given and one was made up.

    Args:
        models: directories of Hugging Face causal language models with their tokenizers.
        host: address to listen on; anything but a loopback address exposes the service.
        port: TCP port, 0 for a free one.
        state_dir: where training runs and checkpoints are kept.
        api_key: key clients must send, starting with `tml-`; None makes one up.
        device: `auto`, `cpu` or a torch device.
        dtype: `auto`, `float32` or `bfloat16`.
        threads: torch threads, 0 for torch's own choice.
        max_body_bytes: largest request accepted.
        log_level: `debug`, `info`, `warning` or `error`.
        parent: process id without which the service ends.
        ready: where the ready line goes.

    Raises:
        ModelDirectoryError: if a directory does not hold a causal language model.
        BadRequestError: if a setting breaks its rule.
    """
    set_up_logging(log_level)
    settings = Settings(
        models=tuple(Path(model) for model in models),
        state_dir=Path(state_dir),
        api_key=api_key or f"{KEY_PREFIX}local-{secrets.token_urlsafe(24)}",
        host=host,
        port=port,
        device=device,
        dtype=dtype,
        threads=threads,
        max_body_bytes=max_body_bytes,
    )
    if threads:
        torch.set_num_threads(threads)
    service = Service(settings)
    announce = {} if api_key else {"api_key": settings.api_key}
    asyncio.run(_run(service, parent, ready or sys.stdout, announce))


async def _run(
    service: Service, parent: int | None, ready: TextIO, announce: dict[str, str]
) -> None:
    settings = service.settings
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    runner = web.AppRunner(
        build_app(service), access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_S
    )
    await runner.setup()
    site = web.TCPSite(runner, settings.host, settings.port)
    await site.start()
    address = runner.addresses[0]
    url = f"http://{address[0]}:{address[1]}"
    names = [engine.backbone.name for engine in service.engines]
    line = {"event": "ready", "url": url, "pid": os.getpid(), "models": names, **announce}
    ready.write(json.dumps(line) + "\n")
    ready.flush()
    log.info("serving %s at %s", ", ".join(names), url)
    watcher = asyncio.create_task(_watch_parent(parent, stop))
    await stop.wait()
    log.info("stopping")
    watcher.cancel()
    with suppress(asyncio.CancelledError):
        await watcher
    await runner.cleanup()
    log.info("stopped")


async def _watch_parent(parent: int | None, stop: asyncio.Event) -> None:
    # A killed parent cannot say goodbye; its child is then given to another process.
    while parent is not None:
        if os.getppid() != parent:
            log.warning("process %d, which started this service, has ended", parent)
            stop.set()
            return
        await asyncio.sleep(PARENT_CHECK_S)


class _JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message and, where there is one, the error."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def set_up_logging(level: str) -> None:
    """Log to standard error as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logger = logging.getLogger("tokengym.agents.service")
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
