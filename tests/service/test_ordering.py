"""Training requests are performed in the order of their numbers, each once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.agents.service.engine.compute_thread import ComputeThread
from tokengym.agents.service.errors import BadRequestError, GoneError, UnknownResourceError
from tokengym.agents.service.state.futures import KEPT, FutureStore
from tokengym.agents.service.state.ordering import RequestOrder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _work(number: int, done: list[int]) -> Callable[[], Awaitable[int]]:
    async def work() -> int:
        return number

    def start() -> Awaitable[int]:
        done.append(number)
        return work()

    return start


def test_what_waits_for_its_turn_fails_when_the_run_ends() -> None:
    async def play() -> None:
        futures = FutureStore()
        ordering = RequestOrder("a:train:0", futures)
        waiting = futures.get(ordering.admit(2, _work(2, [])))
        ordering.end("training run 'run' has ended")
        failed = await asyncio.wait_for(waiting, 5)
        assert failed == {"error": "training run 'run' has ended", "category": "user"}

    asyncio.run(play())


@settings(deadline=None)
@given(st.permutations(range(1, 8)), st.lists(st.integers(1, 7), max_size=5))
def test_any_order_of_arrival_is_performed_in_order_and_once(
    arrival: list[int], repeated: list[int]
) -> None:
    async def play() -> None:
        futures = FutureStore()
        ordering = RequestOrder("a:train:0", futures)
        done: list[int] = []
        ids = {n: ordering.admit(n, _work(n, done)) for n in arrival}
        for number in repeated:
            assert ordering.admit(number, _work(number, done)) == ids[number]
        assert done == list(range(1, 8))
        assert [await futures.get(ids[n]) for n in range(1, 8)] == list(range(1, 8))

    asyncio.run(play())


def test_runs_do_not_wait_for_each_other() -> None:
    async def play() -> None:
        futures = FutureStore()
        one, two = RequestOrder("a:train:0", futures), RequestOrder("a:train:0", futures)
        done: list[int] = []
        one.admit(5, _work(5, done))
        two.admit(1, _work(1, done))
        assert done == [1]
        one.end("over")

    asyncio.run(play())


def test_a_number_that_never_comes_is_passed_over() -> None:
    async def play() -> None:
        futures = FutureStore()
        ordering = RequestOrder("a:train:0", futures, gap_s=0.05)
        done: list[int] = []
        ordering.admit(1, _work(1, done))
        late = ordering.admit(3, _work(3, done))
        assert done == [1]
        assert await futures.get(late) == 3
        assert done == [1, 3]

    asyncio.run(play())


def test_refused_requests_numbers_are_passed_over() -> None:
    async def play() -> None:
        futures = FutureStore()
        ordering = RequestOrder("a:train:0", futures, gap_s=3600.0)
        done: list[int] = []
        late = ordering.admit(3, _work(3, done))
        ordering.admit(2, lambda: asyncio.sleep(0))
        assert done == []
        ordering.admit(1, lambda: asyncio.sleep(0))
        assert await futures.get(late) == 3
        assert done == [3]

    asyncio.run(play())


def test_results_are_kept_for_a_while() -> None:
    async def play() -> None:
        futures = FutureStore()

        async def work() -> bytes:
            return b"x"

        first = futures.add(work())
        assert await futures.get(first) == await futures.get(first) == b"x"
        for _ in range(KEPT):
            await futures.get(futures.add(work()))
        with pytest.raises(GoneError, match="no longer held"):
            futures.get(first)
        with pytest.raises(GoneError, match="earlier run"):
            futures.get(f"00000000{first[8:]}" if first[:8] != "00000000" else "11111111-0")
        for unknown in ("nonsense", f"{first[:8]}-999999"):
            with pytest.raises(UnknownResourceError, match="unknown"):
                futures.get(unknown)

    asyncio.run(play())


class _Batch:
    """What a request carries."""


@pytest.mark.parametrize("early", [False, True])
def test_of_a_failed_request_only_a_message_is_kept(early: bool) -> None:
    async def play() -> None:
        futures, compute = FutureStore(), ComputeThread()
        ordering = RequestOrder("a:train:0", futures)
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

        def start(work: Callable[[], None] = work) -> Awaitable[None]:
            return asyncio.wrap_future(compute.call("client", work))

        del work
        request_id = ordering.admit(2 if early else 1, start)
        del start
        if early:
            ordering.admit(1, _work(1, []))
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
        with pytest.raises(GoneError, match="no longer held"):
            futures.get(ids[0])

    asyncio.run(play())
