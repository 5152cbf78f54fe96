"""End idle connections: those that never finish a request, and half-open ones.

A connection without a request in progress may stay for a while: for a short one until its first
request has shown the key, for longer afterwards.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from aiohttp import web

STRANGER_S = 20.0
# Above the time for which aiohttp itself keeps a connection open for another request.
IDLE_S = 90.0
MAX_STRANGERS = 512
CHECK_S = 2.0

log = logging.getLogger(__name__)


class Connections:
    """Which connections have a request in progress, and how long the others have been silent.

    Args:
        stranger_s: seconds a connection may be silent before a request of it showed the key.
        idle_s: the same afterwards.
        strangers: how many such connections there may be before the oldest are ended.
    """

    def __init__(
        self, stranger_s: float = STRANGER_S, idle_s: float = IDLE_S, strangers: int = MAX_STRANGERS
    ) -> None:
        self._limits = (stranger_s, idle_s, strangers)
        self._active: set[asyncio.BaseTransport] = set()
        self._known: WeakKeyDictionary[asyncio.BaseTransport, None] = WeakKeyDictionary()
        self._silent: WeakKeyDictionary[asyncio.BaseTransport, float] = WeakKeyDictionary()

    @contextmanager
    def serving(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """Note that an authenticated request is in progress on a connection."""
        if transport is None:
            yield
            return
        self._known[transport] = None
        self._active.add(transport)
        try:
            yield
        finally:
            self._active.discard(transport)
            self._silent[transport] = time.monotonic()

    def overdue(
        self, transports: Iterable[asyncio.Transport], now: float
    ) -> list[asyncio.Transport]:
        """Return the connections to end, of all that are open at `now`, a monotonic time."""
        stranger_s, idle_s, most = self._limits
        silent = [one for one in transports if one not in self._active]
        since = {one: self._silent.setdefault(one, now) for one in silent}
        strangers = [one for one in silent if one not in self._known]
        strangers.sort(key=lambda one: since[one])
        too_many = strangers[: max(0, len(strangers) - most)]
        return [
            one
            for one in silent
            if one in too_many or now - since[one] > (idle_s if one in self._known else stranger_s)
        ]

    async def end_overdue(self, server: web.Server) -> None:
        """Keep ending overdue connections."""
        while True:
            await asyncio.sleep(CHECK_S)
            transports = [c.transport for c in server.connections if c.transport is not None]
            overdue = self.overdue(transports, time.monotonic())
            for transport in overdue:
                transport.abort()
            if overdue:
                log.info("%d silent connections were ended", len(overdue))
