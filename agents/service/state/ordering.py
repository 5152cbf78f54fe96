"""Run training requests in the order of their sequence numbers, each exactly once.

The SDK numbers the requests of a training client from one. A request sent again after a lost
response gets the first one's result. A request that overtakes another waits for it, but not
forever: a request may be refused unread, and its number never arrives.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tokengym.agents.service.errors import GoneError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tokengym.agents.service.state.futures import FutureStore

GAP_S = 10.0
REMEMBERED = 1024

log = logging.getLogger(__name__)


@dataclass
class _Queue:
    next: int = 1
    request_ids: dict[int, str] = field(default_factory=dict)
    early: dict[int, tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = field(
        default_factory=dict
    )
    timer: asyncio.TimerHandle | None = None


class Ordering:
    """One queue of requests per training run. Event loop only."""

    def __init__(self, futures: FutureStore, gap_s: float = GAP_S) -> None:
        self._futures = futures
        self._gap_s = gap_s
        self._queues: dict[str, _Queue] = {}

    def admit(self, run_id: str, seq_id: int | None, start: Callable[[], Awaitable[Any]]) -> str:
        """Start a request when its number is next; returns the request id of its result.

        Args:
            run_id: the training run.
            seq_id: the request's number, or None for one that may run at any time.
            start: starts the work; called once, on the event loop.
        """
        if not seq_id:
            return self._futures.add(start())
        queue = self._queues.setdefault(run_id, _Queue())
        if seq_id in queue.request_ids:
            return queue.request_ids[seq_id]
        if seq_id <= queue.next:
            queue.next = max(queue.next, seq_id + 1)
            request_id = self._futures.add(start())
            self._release(run_id, queue)
        else:
            turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            queue.early[seq_id] = (start, turn)
            request_id = self._futures.add(_await_turn(turn))
            self._start_timer(run_id, queue)
        queue.request_ids[seq_id] = request_id
        while len(queue.request_ids) > REMEMBERED:
            del queue.request_ids[next(iter(queue.request_ids))]
        return request_id

    def pass_over(self, run_id: str, seq_id: int | None) -> None:
        """Let those go on that follow a request which is refused."""
        self.admit(run_id, seq_id, lambda: asyncio.sleep(0))

    def forget(self, run_id: str) -> None:
        """Forget a run that has ended; requests that wait for their turn fail."""
        queue = self._queues.pop(run_id, None)
        if queue is None:
            return
        if queue.timer is not None:
            queue.timer.cancel()
        for _, turn in queue.early.values():
            turn.set_exception(GoneError(f"training run {run_id!r} has ended"))

    def _release(self, run_id: str, queue: _Queue) -> None:
        if queue.timer is not None:
            queue.timer.cancel()
            queue.timer = None
        while queue.next in queue.early:
            start, turn = queue.early.pop(queue.next)
            queue.next += 1
            turn.set_result(start())
        if queue.early:
            self._start_timer(run_id, queue)

    def _start_timer(self, run_id: str, queue: _Queue) -> None:
        if queue.timer is None:
            loop = asyncio.get_running_loop()
            queue.timer = loop.call_later(self._gap_s, self._skip_gap, run_id, queue)

    def _skip_gap(self, run_id: str, queue: _Queue) -> None:
        queue.timer = None
        first = min(queue.early)
        log.warning("%s: request %d never arrived, continuing with %d", run_id, queue.next, first)
        queue.next = first
        self._release(run_id, queue)


async def _await_turn(turn: asyncio.Future[Any]) -> Any:
    return await (await turn)
