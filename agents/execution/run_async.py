"""Running a coroutine from synchronous code, even where an event loop is running."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, like `asyncio.run`, in a notebook too.

    A notebook runs an event loop in its own thread, in which no other may run; the work then gets
    a thread with a loop of its own. An interrupt cancels it.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.set_result((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as thread:
        ended = thread.submit(asyncio.run, run())
        try:
            return ended.result()
        except BaseException:
            if not ended.done():
                loop, task = started.result()
                loop.call_soon_threadsafe(task.cancel)
            raise
