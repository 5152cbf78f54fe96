"""Turns on an event loop: work that is ready in a burst runs a few milliseconds at a time.

An event loop runs everything that is ready before it looks at anything else. When thousands of
episodes get their replies at once, that takes a second in which heartbeats, time-outs and other
replies wait. A coroutine that is about to compute awaits `take_turn` first.
"""

import asyncio
from collections import deque
from time import perf_counter
from weakref import WeakKeyDictionary

BUDGET_S = 0.002
"""Time after which a pass of the loop gives no turn to who has not waited for it."""
_TURNS = 8
"""Most turns in a pass for those who waited: what these cost is known only afterwards."""


class Pacer:
    """Gives turns in the order of requests, a few in each pass of a loop.

    Args:
        loop: the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open = False
        self._ends = 0.0

    async def turn(self) -> None:
        """Wait for a turn; return at once while a pass has time left."""
        if not self._open:
            self._begin_pass()
        if self._waiting or perf_counter() > self._ends:
            place = self._loop.create_future()
            self._waiting.append(place)
            await place

    def _begin_pass(self) -> None:
        """Wake those that have waited longest."""
        self._open, self._ends = True, perf_counter() + BUDGET_S
        for _ in range(min(_TURNS, len(self._waiting))):
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
        # The coroutines that were woken run before this callback.
        self._loop.call_soon(self._end_pass)

    def _end_pass(self) -> None:
        self._open = False
        if self._waiting:
            self._begin_pass()


_PACERS: "WeakKeyDictionary[asyncio.AbstractEventLoop, Pacer]" = WeakKeyDictionary()


async def take_turn() -> None:
    """Wait for a turn on the running event loop; a coroutine run by hand does not wait."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    pacer = _PACERS.get(loop)
    if pacer is None:
        pacer = _PACERS[loop] = Pacer(loop)
    await pacer.turn()
