"""The compute thread: the only one that touches models, so they need no locks.

Work is done in pieces: a batch of a training request, an optimizer step, a token of each sequence
that is sampled for a client. A client's operations are done in the order of their arrival, and
after each piece comes the client that has had the least time, so that nobody waits for all that
another one has queued.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Pieces = Generator[None, None, T]
"""An operation in pieces; yields between them."""

# Requests of one group arrive within milliseconds; sharing their prompt is worth the wait.
GATHER_S = 0.002
REMEMBERED = 1024

log = logging.getLogger(__name__)


def client_of(owned_id: str) -> str:
    """Return the session that a training run or sampler belongs to: time is shared among them."""
    return owned_id.split(":", 1)[0]


class WorkSource(Protocol):
    """Work of several clients, such as sampling."""

    def waiting(self) -> Iterable[str]:
        """Return the clients that have a next piece."""
        ...

    def step(self, client: str) -> None:
        """Do the next piece of a client that waits."""


class ComputeThread:
    """Runs operations and sampling steps on one thread, each client's in their order.

    Args:
        clock: returns the time in seconds, by which clients share the thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wake = threading.Condition()
        self._callbacks: deque[Callable[[], None]] = deque()
        # The operations of each client, in their order.
        self._operations: dict[str, deque[Iterator[None]]] = {}
        self._sources: tuple[WorkSource, ...] = ()
        # Seconds that clients have had of operations and of each source. Who comes, or comes back,
        # starts with what the least served has had: nobody saves up.
        self._served: dict[tuple[str, WorkSource | None], float] = {}
        self._least = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="compute", daemon=True)

    def start(self, sources: Iterable[WorkSource]) -> None:
        """Start the thread; `sources` are the samplers."""
        self._sources = tuple(sources)
        self._thread.start()

    def call(self, client: str, operation: Callable[[], Any | Pieces[Any]]) -> Future[Any]:
        """Run an operation of a client after all those it called before.

        Args:
            client: who asks; time is shared fairly among them.
            operation: the work, or a function that returns it in pieces.
        """
        future: Future[Any] = Future()
        work = _carried_out(operation, future)
        self.post(lambda: self._operations.setdefault(client, deque()).append(work))
        return future

    def post(self, callback: Callable[[], None]) -> None:
        """Run a short operation before the next piece, such as queuing a sampling request."""
        with self._wake:
            self._callbacks.append(callback)
            self._wake.notify()

    def stop(self, timeout: float = 30.0) -> None:
        """Finish the current piece and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopping:
            self._run_callbacks()
            if self._work():
                continue
            with self._wake:
                while not (self._callbacks or self._stopping):
                    self._wake.wait()
            time.sleep(GATHER_S)

    def _work(self) -> bool:
        """Do the piece of the client that has had the least time; returns whether there was one."""
        turns: list[tuple[str, WorkSource | None]] = [(client, None) for client in self._operations]
        for source in self._sources:
            turns += [(client, source) for client in source.waiting()]
        if not turns:
            return False
        for turn in turns:
            self._served[turn] = max(self._served.get(turn, 0.0), self._least)
        turn = client, chosen = min(turns, key=self._served.__getitem__)
        self._least = self._served[turn]
        start = self._clock()
        if chosen is None:
            self._step(client)
        else:
            chosen.step(client)
        self._served[turn] += self._clock() - start
        if len(self._served) > REMEMBERED:
            self._served = {turn: s for turn, s in self._served.items() if s > self._least}
        return True

    def _step(self, client: str) -> None:
        """Do the next piece of a client's first operation."""
        queue = self._operations[client]
        for _ in queue[0]:
            return
        queue.popleft()
        if not queue:
            del self._operations[client]

    def _run_callbacks(self) -> None:
        while self._callbacks:
            try:
                self._callbacks.popleft()()
            except Exception:
                # One client's request must not end the thread that serves them all.
                log.exception("a callback failed")


def _carried_out(operation: Callable[[], Any | Pieces[Any]], future: Future[Any]) -> Iterator[None]:
    """Carry an operation out and settle its future."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = operation()
        if isinstance(result, Generator):
            result = yield from result
    except Exception as error:
        log.debug("operation failed", exc_info=True)
        future.set_exception(error)
    else:
        future.set_result(result)
