"""Run the service as a child process: start it, wait for it, monitor it and stop it.

The SDK takes a refused connection for a transient failure and retries for five minutes or more.
When the child crashes, the parent therefore listens at the same address and answers every request
with a non-retryable error that names the log.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self, TypeVar
from urllib.parse import urlsplit

from tokengym.agents.service.config import KEY_VARIABLE, ServiceConfig
from tokengym.agents.service.errors import ServiceDiedError, StartupError
from tokengym.agents.service.state.folder import make_private
from tokengym.agents.settings import typed_words
from tokengym.loopback import Answering, LocalServer, bypass_proxies

T = TypeVar("T")

WATCH_S = 0.25
STOP_S = 15.0
LOG_TAIL = 2000
# The SDK retries refused connections, 408, 409, 429 and every 5xx; it gives up on this one.
GIVE_UP = 424


def spawn(
    arguments: Sequence[str], environment: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start `python -m tokengym.agents.service` as a child in its own session.

    Args:
        arguments: the command's options and values.
        environment: all variables it sees.
        log: where its standard error goes.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "tokengym.agents.service", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        # Ctrl-C is meant for the parent, which then stops the child cleanly.
        start_new_session=True,
    )


class LocalService:
    """A service for one model in a child process; a context manager.

    Args:
        model_dir: directory of a causal language model and its tokenizer.
        state_dir: where training runs and checkpoints are kept; also the log's default place.
        log_path: where the child's log goes.
        startup_s: seconds to wait until it is ready.
        **options: other options of `ServiceConfig` by name.

    Raises:
        OptionError: if an option is out of range.
        StartupError: from `start`, if it does not become ready; gives the reason.
    """

    spawn: Any = staticmethod(spawn)
    """Starts the child; another function, such as a fork, can take its place."""

    def __init__(
        self,
        model_dir: str | Path,
        *,
        state_dir: str | Path,
        log_path: str | Path | None = None,
        startup_s: float = 300.0,
        **options: Any,
    ) -> None:
        self.model_dir = Path(model_dir)
        self.state_dir = Path(state_dir)
        self._config = ServiceConfig(models=(self.model_dir,), state_dir=self.state_dir, **options)
        self.api_key = self._config.api_key
        self.deterministic = self._config.deterministic
        self.log_path = Path(log_path) if log_path else self.state_dir / "service.log"
        self.base_url = ""
        self.model_name = ""
        self.precision = ""
        self.threads = 0
        self._startup_s = startup_s
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        """Start the service."""
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Stop the service."""
        self.stop()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """The child's exit code, negative for a signal; None while it runs."""
        return self._running().poll()

    def start(self) -> None:
        """Start the child and wait until it listens."""
        make_private(self.state_dir)
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        arguments = [*typed_words(self._config), "--parent", str(os.getpid())]
        # The key goes through the environment: a command line is visible to every user.
        environment = {**os.environ, KEY_VARIABLE: self.api_key}
        with self.log_path.open("ab") as log:
            process = self._process = self.spawn(arguments, environment, log)
        line = self._ready_line(process)
        self.base_url = line["url"]
        bypass_proxies(self.base_url)
        self.model_name = line["models"][0]
        self.precision = line["precision"]
        self.threads = line["threads"]
        self._watcher = threading.Thread(target=self._watch, name="service-watch", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Stop the child: SIGTERM, and SIGKILL if it does not end in time."""
        self._stopping.set()
        process = self._process
        if process is not None:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(STOP_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._watcher is not None:
            self._watcher.join()

    def raise_if_dead(self) -> None:
        """Raise if the child has ended on its own.

        Raises:
            ServiceDiedError: with the exit code and the log's path.
        """
        if self._stopping.is_set() or self.returncode is None:
            return
        raise ServiceDiedError(self._death_notice())

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise StartupError("the service must be started first")
        return self._process

    def _ready_line(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        deadline = time.monotonic() + self._startup_s
        # A pipe cannot be read with a time limit on Windows: the end of the child ends the read.
        limit = threading.Timer(self._startup_s, process.kill)
        limit.start()
        try:
            line = process.stdout.readline()
        finally:
            limit.cancel()
        if line.endswith(b"\n"):
            ready: dict[str, Any] = json.loads(line)
            return ready
        code = process.wait()
        process.stdout.close()
        if time.monotonic() < deadline:
            how = f"ended with exit code {code} before it was ready"
        else:
            how = f"must be ready within {self._startup_s:g} s and was not"
        raise StartupError(f"the service {how}; {self._last_log_line()}")

    def _watch(self) -> None:
        process = self._running()
        while not self._stopping.wait(WATCH_S):
            if process.poll() is not None:
                # A restarted service may have taken the address: then that one answers.
                with suppress(OSError), _stub(self.base_url, self._death_notice()) as server:
                    while not self._stopping.is_set():
                        server.handle_request()
                return

    def _death_notice(self) -> str:
        code = self.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
        return f"the local service at {self.base_url} ended with {how}; its log is {self.log_path}"

    def _last_log_line(self) -> str:
        text = self.log_path.read_text(errors="replace")[-LOG_TAIL:].strip()
        last = text.splitlines()[-1] if text else "it logged nothing"
        return f"its last line in {self.log_path}: {last}"


def _stub(url: str, message: str) -> LocalServer:
    """Return a server that answers every request in place of the service at `url`.

    Raises:
        OSError: if the address is taken.
    """
    place = urlsplit(url)
    body = json.dumps({"detail": message}).encode()

    class Handler(Answering):
        def _respond(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            # Refused telemetry makes the SDK log a traceback for each batch.
            if self.path.endswith("/telemetry"):
                self.answer(b'{"status": "accepted"}')
            else:
                self.answer(body, status=GIVE_UP)

        do_GET = do_POST = do_PUT = do_DELETE = _respond

    server = LocalServer(place.hostname or "127.0.0.1", place.port or 80, Handler)
    server.timeout = WATCH_S
    return server


async def guard(service: LocalService, work: Coroutine[Any, Any, T], grace_s: float = 10.0) -> T:
    """Await `work`, such as a training run, while the service lives.

    Args:
        service: the service that `work` needs.
        work: a coroutine; cancelled when the service dies.
        grace_s: seconds `work` gets to end after that.

    Raises:
        ServiceDiedError: if the service dies first, whatever `work` raised because of it.
    """
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=WATCH_S)
            if not task.done():
                service.raise_if_dead()
    except (ServiceDiedError, asyncio.CancelledError):
        task.cancel()
        await asyncio.wait([task], timeout=grace_s)
        if task.done() and not task.cancelled():
            # Retrieved, so that asyncio does not report it as lost.
            task.exception()
        raise
    if not task.cancelled() and task.exception() is not None:
        # If the service died, that explains the client's error better than the error itself.
        await asyncio.sleep(2 * WATCH_S)
        service.raise_if_dead()
    return task.result()
