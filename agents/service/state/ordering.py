"""Run the requests of a training run in the order of their sequence numbers, each exactly once.

The SDK numbers the requests of a training client from one. A request sent again after a lost
response gets the first one's result. A request that overtakes another waits for it, but not
forever: a request may be refused unread, and its number never arrives.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from tokengym.agents.service.errors import GoneError
from tokengym.agents.service.state.futures import FutureStore

GAP_S = 10.0
REMEMBERED = 1024

log = logging.getLogger(__name__)


class RequestOrder:
    """The requests of one training run. Event loop only."""

    def __init__(self, run_id: str, futures: FutureStore, gap_s: float = GAP_S) -> None:
        self._run_id, self._futures = run_id, futures
        self._gap_s = gap_s
        self._next = 1
        self._ids: dict[int, str] = {}
        self._waiting: dict[int, tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def admit(self, seq_id: int | None, start: Callable[[], Awaitable[Any]]) -> str:
        """Start a request when its number is next; returns the request id of its result.

        Args:
            seq_id: the request's number, or None for one that may run at any time.
            start: starts the work; called once, on the event loop.
        """
        if not seq_id:
            return self._futures.add(start())
        if seq_id not in self._ids:
            turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._waiting[seq_id] = (start, turn)
            self._ids[seq_id] = self._futures.add(_await_turn(turn))
            while len(self._ids) > REMEMBERED:
                del self._ids[next(iter(self._ids))]
            self._go_on()
        return self._ids[seq_id]

    def end(self, reason: str) -> None:
        """Fail the requests that wait for their turn."""
        self._stop_timer()
        for _, turn in self._waiting.values():
            turn.set_exception(GoneError(reason))

    def _go_on(self) -> None:
        """Start those whose turn it is; the others wait for as long again."""
        while self._waiting and (first := min(self._waiting)) <= self._next:
            self._stop_timer()
            start, turn = self._waiting.pop(first)
            self._next = max(self._next, first + 1)
            turn.set_result(start())
        if self._waiting and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._gap_s, self._skip_gap)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _skip_gap(self) -> None:
        first = min(self._waiting)
        said = "%s: request %d never arrived, continuing with %d"
        log.warning(said, self._run_id, self._next, first)
        self._next = first
        self._go_on()


async def _await_turn(turn: asyncio.Future[Any]) -> Any:
    return await (await turn)
