"""Statuses that a server answers with, while the SDK asks again in silence for minutes."""

import asyncio
import contextlib
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from tokengym.agents.training.connection import ServiceRefusedError

T = TypeVar("T")

WAIT = 60.0
"""Seconds without any answer after which a server is given up."""
_LONGEST = 5  # times as long a server may compute, as long as it answers anything
_TOLD = 10.0
_FAILURES = 3  # 5xx in a trial: one may be an accident
_POLL = 0.1
_STATUS = re.compile(r'HTTP Request: .*/api/v1/((?:client/)?\w+)\S* "\S+ ((\d{3})[^"]*)"')
_BACKGROUND = ("telemetry", "session_heartbeat")


@dataclass
class Answers:
    """The HTTP answers to one trial after another, read off the log of httpx.

    Attributes:
        tell: shows a line to people.
        wait: seconds without any answer, or a fifth of those for one result, before giving up.
        last: status and route of the latest answer to the trial; empty if there is none.
        silent: whether the server left a trial without an answer in time.
    """

    tell: Callable[[str], None]
    wait: float = WAIT
    last: str = ""
    silent: bool = False
    _heard: float = 0.0
    _failures: int = 0
    _failed: str = ""

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Read the log while the context lasts, instead of the SDK's own warnings."""
        http, sdk = logging.getLogger("httpx"), logging.getLogger("tinker")
        levels = http.level, sdk.level
        http.addFilter(self._note)
        http.setLevel(logging.INFO)
        sdk.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            http.removeFilter(self._note)
            http.setLevel(levels[0])
            sdk.setLevel(levels[1])

    async def bounded(self, request: Awaitable[T]) -> T:
        """Await a request, and tell at once what fails.

        Raises:
            ServiceRefusedError: after three answers with a status of 500 or more; if nothing is
                answered in `wait` seconds, or the request takes five times as long.
        """
        self.last, self._failures = "", 0
        begun = self._heard = time.monotonic()
        waiting = False
        task = asyncio.ensure_future(request)
        try:
            while not (await asyncio.wait([task], timeout=_POLL))[0]:
                now = time.monotonic()
                if self._failures >= _FAILURES:
                    raise ServiceRefusedError(f"{_FAILURES} times {self._failed}")
                quiet, whole = now - self._heard > self.wait, now - begun > _LONGEST * self.wait
                if quiet or whole:
                    self.silent = True
                    times = 1 if quiet else _LONGEST
                    raise ServiceRefusedError(f"no answer in {times * self.wait:g} s")
                if now - begun > _TOLD and not waiting:
                    waiting = True
                    self.tell(f"  no result yet; it ends after {self.wait:g} s without any answer")
            return await task
        finally:
            task.cancel()

    def _note(self, record: logging.LogRecord) -> bool:
        """Read a line of the log, and leave it out."""
        if found := _STATUS.match(record.getMessage()):
            route, status, code = found.groups()
            self._heard = time.monotonic()
            if not route.startswith(_BACKGROUND):
                self.last = f"{status} from {route}"
                if int(code) >= 500:
                    self._failures, self._failed = self._failures + 1, status
                    self.tell(f"  {self.last}")
        return False


async def in_thread(make: Callable[[], T]) -> T:
    """Call what blocks, as the SDK's constructors do; it may be abandoned, unlike an executor's."""
    made: Future[T] = Future()

    def work() -> None:
        made.set_running_or_notify_cancel()
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return await asyncio.wrap_future(made)
