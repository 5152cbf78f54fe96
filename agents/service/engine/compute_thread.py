"""The compute thread: the only one that touches models, so they need no locks.

Work is done in pieces: a batch of a training request, an optimizer step, a token of each sequence
that is sampled for a client. Next comes the waiting client that has had the least time. A large
piece also pauses, before each product of matrices, for small ones of clients that have had less.
Those run on a thread of their own, as torch has modes and hooks by thread; the first one waits.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Pieces = Generator[int, None, T]
"""An operation in pieces; yields the size of the next one, in positions."""

WHOLE = 1 << 60
"""The size of an operation that no other may be in the middle of when it runs."""
# A piece may pause for one this many times smaller, and that one for an even smaller one: what they
# hold at once is a third more than what the first one holds.
SMALLER = 4
# How often a piece looks whether someone waits.
LOOK_S = 0.005
# Requests of one group arrive within milliseconds; sharing their prompt is worth the wait.
GATHER_S = 0.002
REMEMBERED = 1024

log = logging.getLogger(__name__)


def client_of(owned_id: str) -> str:
    """Return the session that a training run or sampler belongs to: time is shared among them."""
    return owned_id.split(":", 1)[0]


class Source(Protocol):
    """Work of several clients, such as sampling."""

    def waiting(self) -> dict[str, int]:
        """Return the size of the next piece of each client that has one, in positions."""
        ...

    def step(self, client: str) -> None:
        """Do the next piece of a client that waits."""


@dataclass(frozen=True)
class _Turn:
    """A client's work in one source: what time is shared among."""

    client: str
    source: Source


@dataclass
class _Running:
    """A piece that runs or pauses.

    Attributes:
        turn: whose it is.
        size: its positions.
        started: when it began.
        resume: puts back what others may have changed, such as the adapter in use.
        paused: seconds that were spent on others since.
    """

    turn: _Turn
    size: int
    started: float
    resume: Callable[[], None] = lambda: None
    paused: float = 0.0

    def own_s(self, now: float) -> float:
        """Return the seconds spent on it so far."""
        return now - self.started - self.paused


class ComputeThread:
    """Runs operations and sampling steps on one thread, each client's in their order.

    Args:
        clock: returns the time in seconds, by which clients share the thread.

    Attributes:
        running: the piece that runs, the last one, and those that pause for it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wake = threading.Condition()
        self._callbacks: deque[Callable[[], None]] = deque()
        self._operations = _Operations()
        self._sources: tuple[Source, ...] = (self._operations,)
        self.running: list[_Running] = []
        self._helpers = ThreadPoolExecutor(thread_name_prefix="compute")
        # Seconds that turns have had. Who comes, or comes back, starts with what the least served
        # has had: nobody saves up.
        self._served: dict[_Turn, float] = {}
        self._least = 0.0
        self._next_look = 0.0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="compute", daemon=True)

    def start(self, sources: Iterable[Source]) -> None:
        """Start the thread; `sources` are the samplers."""
        self._sources += tuple(sources)
        self._thread.start()

    def call(
        self, client: str, operation: Callable[[], Any | Pieces[Any]], size: int = WHOLE
    ) -> Future[Any]:
        """Run an operation of a client after all those it called before.

        Args:
            client: who asks; time is shared fairly among them.
            operation: the work, or a function that returns it in pieces.
            size: of its first piece, in positions.
        """
        future: Future[Any] = Future()
        queued = _Operation(_carried_out(operation, future), size)
        self.post(partial(self._operations.add, client, queued))
        return future

    def post(self, callback: Callable[[], None]) -> None:
        """Run a short operation before the next piece, such as queuing a sampling request."""
        with self._wake:
            self._callbacks.append(callback)
            self._wake.notify()

    def pause(self) -> None:
        """Do small pieces of others in the middle of the one that runs; called by that one."""
        if self._clock() < self._next_look or self._stopping:
            return
        self._run_callbacks()
        running = self.running[-1]
        if self._choose(running) is not None:
            self._helpers.submit(self._serve, running).result()
            running.resume()
        self._next_look = self._clock() + LOOK_S

    def stop(self, timeout: float = 30.0) -> None:
        """Finish the current piece and end the thread."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join(timeout)
        self._helpers.shutdown(wait=False)

    def _run(self) -> None:
        _here.thread = self
        while not self._stopping:
            self._run_callbacks()
            if self._work():
                continue
            with self._wake:
                while not (self._callbacks or self._stopping):
                    self._wake.wait()
            time.sleep(GATHER_S)

    def _serve(self, running: _Running) -> None:
        """Do what others wait for in a pause of `running`."""
        _here.thread = self
        while not self._stopping and self._work(running):
            self._run_callbacks()

    def _choose(self, pausing: _Running | None = None) -> tuple[_Turn, int] | None:
        """Return who is next and the size of its piece: who has had the least time.

        Args:
            pausing: whose pause it is: then only small pieces of those who have had less.
        """
        busy = {running.turn for running in self.running}
        most, limit = WHOLE, float("inf")
        if pausing is not None:
            most = pausing.size // SMALLER
            limit = self._served[pausing.turn] + pausing.own_s(self._clock())
        best: tuple[_Turn, int] | None = None
        for source in self._sources:
            for client, size in source.waiting().items():
                turn = _Turn(client, source)
                if turn in busy:
                    continue
                served = max(self._served.get(turn, 0.0), self._least)
                self._served[turn] = served
                if size <= most and served < limit:
                    best, limit = (turn, size), served
        return best

    def _work(self, pausing: _Running | None = None) -> bool:
        """Do the piece of whoever is next; see `_choose`. Returns whether there was one."""
        chosen = self._choose(pausing)
        if chosen is None:
            return False
        piece = _Running(*chosen, self._clock())
        turn = piece.turn
        self._least = max(self._least, self._served[turn])
        self.running.append(piece)
        try:
            turn.source.step(turn.client)
        finally:
            self.running.pop()
            now = self._clock()
            self._served[turn] += piece.own_s(now)
            if pausing is not None:
                pausing.paused += now - piece.started
        if len(self._served) > REMEMBERED:
            held = {running.turn for running in self.running}
            self._served = {t: s for t, s in self._served.items() if s > self._least or t in held}
        return True

    def _run_callbacks(self) -> None:
        while self._callbacks:
            try:
                self._callbacks.popleft()()
            except Exception:
                # One client's request must not end the thread that serves them all.
                log.exception("a callback failed")


@dataclass
class _Operation:
    """The pieces of an operation that are left, and the size of the next one."""

    pieces: Iterator[int]
    size: int


class _Operations:
    """The operations of each client, in their order."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[_Operation]] = {}

    def add(self, client: str, operation: _Operation) -> None:
        """Queue an operation."""
        self._queues.setdefault(client, deque()).append(operation)

    def waiting(self) -> dict[str, int]:
        """See `Source.waiting`."""
        return {client: queue[0].size for client, queue in self._queues.items()}

    def step(self, client: str) -> None:
        """See `Source.step`."""
        queue = self._queues[client]
        size = next(queue[0].pieces, None)
        if size is not None:
            queue[0].size = size
            return
        queue.popleft()
        if not queue:
            del self._queues[client]


def _carried_out(operation: Callable[[], Any | Pieces[Any]], future: Future[Any]) -> Iterator[int]:
    """Carry an operation out and settle its future; yields the size of each piece to come."""
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


class _Here(threading.local):
    """The compute thread that this thread works for."""

    thread: ComputeThread | None = None


_here = _Here()


def pause() -> None:
    """Let the work of others come in here, if this is a compute thread."""
    if _here.thread is not None:
        _here.thread.pause()


def resume_with(resume: Callable[[], None]) -> None:
    """Call `resume` after each pause of the piece that runs, if this is a compute thread."""
    if _here.thread is not None:
        _here.thread.running[-1].resume = resume


@contextmanager
def without_pauses() -> Iterator[None]:
    """Let nobody come in within the block."""
    former, _here.thread = _here.thread, None
    try:
        yield
    finally:
        _here.thread = former


def at_once(pieces: Pieces[T]) -> T:
    """Return what an operation in pieces returns, where nobody else waits."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result
