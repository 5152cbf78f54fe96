"""Executors: work in shards, in this process or in others of this machine."""

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from multiprocessing import get_context, parent_process
from multiprocessing.util import Finalize
from typing import TypeVar

from tokengym.agents.execution.memory import set_up_memory
from tokengym.envs.core.errors import TokengymError

S = TypeVar("S")
R = TypeVar("R")

Results = Generator[tuple[int, R], None, None]
"""Number and result of each shard; closed early, it ends the work that is under way."""

_SHARDS_EACH, _LARGEST_SHARD = 4, 1024
"""Shards of each worker, so that none waits long for the last one, and most items of a shard."""


class WorkerError(TokengymError):
    """A worker died."""


@dataclass(frozen=True)
class Executor(ABC):
    """Runs work on shards.

    Attributes:
        workers: shards under way at once.
        watch: `map` calls it with the numbers of finished items and of all.
    """

    workers: int = 1
    watch: Callable[[int, int], None] = field(default=lambda done, total: None, compare=False)

    @abstractmethod
    def run(self, work: Callable[[S], R], shards: Iterable[S]) -> Results[R]:
        """Yield the number of each shard and its result as it ends, in any order.

        Args:
            work: what to do with a shard; like shards and results it is pickled.
            shards: the shards; few of them are held at a time.

        Raises:
            WorkerError: if a worker dies.
            Exception: what `work` raises; shards that are under way are given up.
        """

    def ranges(self, count: int) -> list[range]:
        """Return the places of each shard of `count` items."""
        size = max(1, min(ceil(count / (_SHARDS_EACH * self.workers)), _LARGEST_SHARD))
        return [range(at, min(at + size, count)) for at in range(0, count, size)]

    def map(self, work: Callable[[Sequence[S]], Sequence[R]], items: Sequence[S]) -> list[R]:
        """Return the result of each item, in order, from work on some of them at a time."""
        shards = (items[part.start : part.stop] for part in self.ranges(len(items)))
        results, done = dict[int, Sequence[R]](), 0
        self.watch(0, len(items))
        for number, some in self.run(work, shards):
            results[number], done = some, done + len(some)
            self.watch(done, len(items))
        return [result for number in sorted(results) for result in results.pop(number)]


class InProcess(Executor):
    """Runs one shard after the other in this process."""

    def run(self, work: Callable[[S], R], shards: Iterable[S]) -> Results[R]:
        """Yield the result of each shard; see `Executor`."""
        for number, shard in enumerate(shards):
            yield number, work(shard)


IN_PROCESS = InProcess()
"""Executor used by default."""


@dataclass(frozen=True)
class Processes(Executor):
    """Runs shards in other processes of this machine, which end with this one.

    They are kept for the next work, as each takes a second to start.
    """

    _idle: list[ProcessPoolExecutor] = field(default_factory=list, init=False, compare=False)

    def __post_init__(self) -> None:
        """See that a process that is itself a child can end: it would wait for idle ones."""
        Finalize(self, _shut_down, (self._idle,), exitpriority=0)

    def run(self, work: Callable[[S], R], shards: Iterable[S]) -> Results[R]:
        """Yield the result of each shard as it ends; see `Executor`."""
        pool = self._idle.pop() if self._idle else process_pool(self.workers)
        todo, running, whole = enumerate(shards), dict[Future[R], int](), True
        try:
            while True:
                for number, shard in islice(todo, self.workers - len(running)):
                    running[pool.submit(work, shard)] = number
                if not running:
                    return
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(ended), ended.result()
        except BrokenProcessPool as error:
            whole = False
            raise WorkerError("a worker was killed, or ran out of memory") from error
        finally:
            if whole and not running:
                self._idle.append(pool)
            else:
                for process in pool._processes.values():  # Python 3.14 has a method for it
                    process.terminate()


def find_executor(
    workers: int, watch: Callable[[int, int], None] = lambda done, total: None
) -> Executor:
    """Return the executor with a number of workers, whose work can be watched."""
    return InProcess(watch=watch) if workers == 1 else Processes(workers, watch)


def _shut_down(pools: list[ProcessPoolExecutor]) -> None:
    while pools:
        pools.pop().shutdown()


def process_pool(workers: int) -> ProcessPoolExecutor:
    """Return a pool of processes that end with this one, however it ends."""
    return ProcessPoolExecutor(workers, get_context("spawn"), _set_up_worker)


def _set_up_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the parent, which ends its workers
    set_up_memory()
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)  # a pool's process would wait forever

    threading.Thread(target=watch, daemon=True).start()
