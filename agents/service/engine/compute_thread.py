"""The compute thread: the only one that touches models, so they need no locks.

Training operations run in the order they arrive; between two of them sampling gets a time slice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

# How long sampling runs before a waiting training operation gets its turn.
SLICE_S = 0.1
# Requests of one group arrive within milliseconds; sharing their prompt is worth the wait.
GATHER_S = 0.002

log = logging.getLogger(__name__)


class Stepper(Protocol):
    """Work that runs in small steps, such as sampling."""

    @property
    def busy(self) -> bool:
        """Whether there is anything to do."""
        ...

    def step(self) -> None:
        """Run one step."""


class ComputeThread:
    """Runs operations and sampling steps on one thread."""

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._operations: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._callbacks: deque[Callable[[], None]] = deque()
        self._steppers: tuple[Stepper, ...] = ()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="compute", daemon=True)

    def start(self, steppers: Iterable[Stepper]) -> None:
        """Start the thread; `steppers` are the samplers."""
        self._steppers = tuple(steppers)
        self._thread.start()

    def call(self, operation: Callable[[], T]) -> Future[T]:
        """Run `operation` after all operations called before it."""
        future: Future[T] = Future()
        with self._wake:
            self._operations.append((operation, future))
            self._wake.notify()
        return future

    def post(self, callback: Callable[[], None]) -> None:
        """Run a short operation before the next step, such as queuing a sampling request."""
        with self._wake:
            self._callbacks.append(callback)
            self._wake.notify()

    def stop(self, timeout: float = 30.0) -> None:
        """Finish the current operation and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        while True:
            with self._wake:
                idle = not (self._operations or self._busy())
                while not (self._operations or self._callbacks or self._stopping or self._busy()):
                    self._wake.wait()
                if self._stopping:
                    return
            if idle and self._callbacks:
                time.sleep(GATHER_S)
            self._run_callbacks()
            if self._operations:
                # No name: it would hold a large request until the next one comes.
                self._perform(*self._operations.popleft())
            end = time.monotonic() + SLICE_S
            while self._busy() and not self._stopping:
                for stepper in self._steppers:
                    if stepper.busy:
                        stepper.step()
                self._run_callbacks()
                if self._operations and time.monotonic() > end:
                    break

    def _busy(self) -> bool:
        return any(stepper.busy for stepper in self._steppers)

    def _run_callbacks(self) -> None:
        while self._callbacks:
            try:
                self._callbacks.popleft()()
            except Exception:
                # One client's request must not end the thread that serves them all.
                log.exception("a callback failed")

    @staticmethod
    def _perform(operation: Callable[[], Any], future: Future[Any]) -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(operation())
        except Exception as error:
            log.debug("operation failed", exc_info=True)
            future.set_exception(error)
