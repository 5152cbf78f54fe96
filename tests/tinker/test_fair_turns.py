"""A burst of work leaves the event loop free for others, and is done in the order it came."""

import asyncio
from time import thread_time

from tokengym.agents.tinker.fair_turns import BUDGET_S, take_turn

COST_S = 0.0004


def work(seconds: float) -> None:
    end = thread_time() + seconds
    while thread_time() < end:
        pass


async def _burst(count: int) -> tuple[list[int], list[float]]:
    """Returns the order in which work was done, and what each pass of the loop took."""
    done: list[int] = []
    passes: list[float] = []

    async def member(number: int) -> None:
        await take_turn()
        work(COST_S)
        done.append(number)

    async def heartbeat() -> None:
        while len(done) < count:
            begun = thread_time()
            await asyncio.sleep(0)
            passes.append(thread_time() - begun)

    beating = asyncio.ensure_future(heartbeat())
    await asyncio.gather(*(member(number) for number in range(count)))
    await beating
    return done, passes


def test_a_burst_is_done_in_order_beside_the_loop() -> None:
    done, passes = asyncio.run(_burst(500))
    assert done == list(range(500))
    slow = [one for one in passes if one > 3 * BUDGET_S]
    # In one pass it would be 200 ms; the first one also creates the tasks.
    assert len(slow) <= 2
    assert max(passes) < 0.1


def test_who_is_cancelled_while_waiting_takes_no_turn() -> None:
    async def some_leave() -> list[int]:
        done: list[int] = []

        async def member(number: int) -> None:
            await take_turn()
            work(COST_S)
            done.append(number)

        tasks = [asyncio.ensure_future(member(number)) for number in range(60)]
        await asyncio.sleep(0)
        for task in tasks[1::2]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return done

    done = asyncio.run(some_leave())
    assert done[0] == 0
    assert set(range(0, 60, 2)) <= set(done)


def test_what_is_run_by_hand_waits_for_nobody() -> None:
    coroutine = take_turn()
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")
