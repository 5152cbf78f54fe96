"""Turns on an event loop: work that is ready in a burst runs a few milliseconds at a time.

An event loop runs everything that is ready before it looks at anything else. When thousands of
episodes get their replies at once, that takes a second in which heartbeats, time-outs and other
replies wait. A coroutine that is about to compute awaits `take_turn` first.
"""

import asyncio
from collections import deque
from time import thread_time
from weakref import WeakKeyDictionary

BUDGET_S = 0.002
"""Processor time that a pass of the loop may take, as long as one turn alone does not take more."""
_FIRST_GUESS_S = 0.001
_MOST_TURNS = 64
_MEMORY = 0.95


class Pacer:
    """Gives turns in the order of requests, a few in each pass of a loop.

    Args:
        loop: the event loop.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._cost = _FIRST_GUESS_S
        self._running = False
        self._begun = 0.0
        self._left = 0
        self._given = 0

    async def turn(self) -> None:
        """Wait for a turn; return at once while a pass has turns left."""
        if not self._running:
            self._running = True
            self._open_pass()
        if self._left > 0 and not self._waiting:
            self._left -= 1
            self._given += 1
            return
        place = self._loop.create_future()
        self._waiting.append(place)
        await place

    def _open_pass(self) -> None:
        """Give the next pass as many turns as fit, judging by the cost of turns so far."""
        self._begun = thread_time()
        self._given = 0
        self._left = max(1, min(_MOST_TURNS, int(BUDGET_S / self._cost)))
        while self._waiting and self._left:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._left -= 1
                self._given += 1
        # The coroutines that got a turn run before this callback.
        self._loop.call_soon(self._close_pass)

    def _close_pass(self) -> None:
        if not self._given and not self._waiting:
            self._running = False
            return
        if self._given:
            each = (thread_time() - self._begun) / self._given
            # Turns of worlds differ: what was dear a moment ago counts more than the mean.
            self._cost = max(each, _MEMORY * self._cost)
        self._open_pass()


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
