"""Pending and finished results, which `retrieve_future` looks up by request id."""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Awaitable
from typing import Any

from tokengym.agents.service.errors import ServiceError, UnknownResourceError

# Finished results stay for a client that lost the connection and asks again.
KEPT = 4096

log = logging.getLogger(__name__)


class FutureStore:
    """Futures by request id. Event loop only.

    Args:
        kept_bytes: of finished results that stay.
    """

    def __init__(self, kept_bytes: int = 1 << 28) -> None:
        self._kept_bytes = kept_bytes
        self._futures: dict[str, asyncio.Future[Any]] = {}
        self._done: deque[str] = deque()
        self._bytes = 0

    def add(self, work: Awaitable[Any]) -> str:
        """Schedule `work`; returns the request id of its result, or of the error it ends with."""
        request_id = secrets.token_hex(8)
        future = self._futures[request_id] = asyncio.ensure_future(_settle(work))
        future.add_done_callback(lambda _: self._finish(request_id))
        return request_id

    def get(self, request_id: str) -> asyncio.Future[Any]:
        """Return the future of a request.

        Raises:
            UnknownResourceError: if there is none, as after a restart or many later requests.
        """
        if request_id not in self._futures:
            raise UnknownResourceError(
                f"request {request_id!r} is unknown: its result is no longer held, or the service "
                "was restarted"
            )
        return self._futures[request_id]

    def _finish(self, request_id: str) -> None:
        self._done.append(request_id)
        self._bytes += _size(self._futures[request_id])
        while len(self._done) > KEPT or (self._bytes > self._kept_bytes and len(self._done) > 1):
            self._bytes -= _size(self._futures.pop(self._done.popleft()))


async def _settle(work: Awaitable[Any]) -> Any:
    """Return the result of `work`, or the answer that tells its client of an error."""
    try:
        return await work
    except (Exception, asyncio.CancelledError) as error:
        answer = _answer(error)
        # The frames of its traceback hold the request, and in cycles the error itself.
        error.__traceback__ = error.__context__ = error.__cause__ = None
        return answer


def _answer(error: BaseException) -> dict[str, str]:
    if isinstance(error, asyncio.CancelledError):
        return {"error": "the request was cancelled", "category": "user"}
    if isinstance(error, ServiceError) and error.status < 500:
        return {"error": str(error)[:1000], "category": "user"}
    log.error("a request failed: %s", error, exc_info=error)
    return {"error": f"{type(error).__name__}: {error}"[:1000], "category": "server"}


def _size(future: asyncio.Future[Any]) -> int:
    if future.cancelled():  # before it began
        return 0
    result = future.result()
    return len(result if isinstance(result, bytes) else repr(result))
