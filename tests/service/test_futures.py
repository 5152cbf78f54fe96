"""Results of requests are kept for a while; of failed ones a message and nothing else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from functools import partial

import pytest

from tokengym.agents.service.engine.compute_thread import ComputeThread
from tokengym.agents.service.errors import BadRequestError, UnknownResourceError
from tokengym.agents.service.state.futures import KEPT, FutureStore


def test_results_are_kept_for_a_while() -> None:
    async def play() -> None:
        futures = FutureStore()

        async def work() -> bytes:
            return b"x"

        first = futures.add(work())
        assert await futures.get(first) == await futures.get(first) == b"x"
        for _ in range(KEPT):
            await futures.get(futures.add(work()))
        for unknown in (first, "nonsense", f"{first[:8]}-999999"):
            with pytest.raises(UnknownResourceError, match="is unknown: its result is no longer"):
                futures.get(unknown)

    asyncio.run(play())


class _Batch:
    """What a request carries."""


def test_of_a_failed_request_only_a_message_is_kept() -> None:
    async def play() -> None:
        futures, compute = FutureStore(), ComputeThread()
        compute.start([])
        batch = _Batch()
        held = weakref.ref(batch)

        def refuse(batch: _Batch) -> None:
            try:
                raise KeyError(batch)
            except KeyError as error:
                raise BadRequestError("targets must be below 96, got 100") from error

        work = partial(refuse, batch)
        del batch

        request_id = futures.add(asyncio.wrap_future(compute.call("client", work)))
        del work
        answer = await futures.get(request_id)
        assert answer == {"error": "targets must be below 96, got 100", "category": "user"}
        # Nobody can say when the collector comes by: no cycle may hold the request.
        await asyncio.to_thread(compute.stop)
        assert held() is None

    gc.collect()
    gc.disable()
    try:
        asyncio.run(play())
    finally:
        gc.enable()


def test_messages_of_failed_requests_count_towards_what_is_kept() -> None:
    async def play() -> None:
        futures = FutureStore(kept_bytes=1000)

        async def refuse() -> None:
            raise BadRequestError("x" * 400)

        ids = [futures.add(refuse()) for _ in range(3)]
        await futures.get(ids[-1])
        assert (await futures.get(ids[1]))["error"] == "x" * 400
        with pytest.raises(UnknownResourceError, match="no longer held"):
            futures.get(ids[0])

    asyncio.run(play())
