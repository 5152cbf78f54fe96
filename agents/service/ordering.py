"""Training requests in the order of their sequence numbers, each performed once.

The SDK numbers the requests of a training client from one. A request that is sent again after a
lost answer gets the answer of the first; one that overtakes another waits for it, for a while: a
number whose request was refused never comes.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tokengym.agents.service.promises import Promises

GAP_S = 10.0
REMEMBERED = 1024

log = logging.getLogger(__name__)


@dataclass
class _Line:
    next: int = 1
    answers: dict[int, str] = field(default_factory=dict)
    early: dict[int, tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = field(
        default_factory=dict
    )
    timer: asyncio.TimerHandle | None = None


class Ordering:
    """The waiting lines of all training runs. Used on the event loop only."""

    def __init__(self, promises: Promises, gap_s: float = GAP_S) -> None:
        self._promises = promises
        self._gap_s = gap_s
        self._lines: dict[str, _Line] = {}

    def admit(self, run_id: str, seq_id: int | None, start: Callable[[], Awaitable[Any]]) -> str:
        """Start work when its number comes; the request id of its result.

        Args:
            run_id: the training run.
            seq_id: the request's number, or None for one outside the order.
            start: begins the work; called once, on the event loop.
        """
        if not seq_id:
            return self._promises.add(start())
        line = self._lines.setdefault(run_id, _Line())
        if seq_id in line.answers:
            return line.answers[seq_id]
        if seq_id <= line.next:
            line.next = max(line.next, seq_id + 1)
            request_id = self._promises.add(start())
            self._release(run_id, line)
        else:
            turn: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            line.early[seq_id] = (start, turn)
            request_id = self._promises.add(_after(turn))
            self._watch(run_id, line)
        line.answers[seq_id] = request_id
        while len(line.answers) > REMEMBERED:
            del line.answers[next(iter(line.answers))]
        return request_id

    def forget(self, run_id: str) -> None:
        """The run has ended."""
        line = self._lines.pop(run_id, None)
        if line is not None and line.timer is not None:
            line.timer.cancel()

    def _release(self, run_id: str, line: _Line) -> None:
        if line.timer is not None:
            line.timer.cancel()
            line.timer = None
        while line.next in line.early:
            start, turn = line.early.pop(line.next)
            line.next += 1
            turn.set_result(start())
        if line.early:
            self._watch(run_id, line)

    def _watch(self, run_id: str, line: _Line) -> None:
        if line.timer is None:
            loop = asyncio.get_running_loop()
            line.timer = loop.call_later(self._gap_s, self._give_up, run_id, line)

    def _give_up(self, run_id: str, line: _Line) -> None:
        line.timer = None
        first = min(line.early)
        log.warning("%s: request %d never came, going on with %d", run_id, line.next, first)
        line.next = first
        self._release(run_id, line)


async def _after(turn: asyncio.Future[Any]) -> Any:
    return await (await turn)
