"""Executors: work in shards, in this process or in others of this machine.

A shard depends on no other, and may be begun twice: where a worker died, another one begins its
shard again. What must survive that, such as rollouts, a shard writes to a file of its own.
"""

import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
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

_MOST_DEATHS = 4
"""Workers that may die on one shard: it is then the shard that kills them."""
_SHARDS_EACH, _LARGEST_SHARD = 4, 1024
"""Shards of each worker, so that none waits long for the last one, and most items of a shard."""


class WorkerError(TokengymError):
    """A shard on which one worker after the other died."""


@dataclass(frozen=True)
class Executor(ABC):
    """Runs work on shards.

    Attributes:
        workers: shards under way at once.
        shard_size: items of a shard; 0 for a few shards a worker.
    """

    workers: int = 1
    shard_size: int = 0

    @abstractmethod
    def run(self, work: Callable[[S], R], shards: Iterable[S]) -> Results[R]:
        """Yield the number of each shard and its result as it ends, in any order.

        Args:
            work: what to do with a shard; like shards and results it is pickled.
            shards: the shards; few of them are held at a time.

        Raises:
            WorkerError: if one worker after the other dies on a shard.
            Exception: what `work` raises; shards that are under way are given up.
        """

    def ranges(self, count: int) -> list[range]:
        """Return the places of each shard of `count` items."""
        fair = min(ceil(count / (_SHARDS_EACH * self.workers)), _LARGEST_SHARD)
        size = max(self.shard_size or fair, 1)
        return [range(at, min(at + size, count)) for at in range(0, count, size)]

    def map(self, work: Callable[[Sequence[S]], Sequence[R]], items: Sequence[S]) -> list[R]:
        """Return the result of each item, in order, from work on some of them at a time."""
        shards = (items[part.start : part.stop] for part in self.ranges(len(items)))
        results = dict(self.run(work, shards))
        return [result for number in sorted(results) for result in results.pop(number)]


class InProcess(Executor):
    """Runs one shard after the other in this process."""

    def run(self, work: Callable[[S], R], shards: Iterable[S]) -> Results[R]:
        """Yield the result of each shard; see `Executor`."""
        for number, shard in enumerate(shards):
            yield number, work(shard)


IN_PROCESS = InProcess()
"""What runs work unless told otherwise."""


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
        todo, again, deaths = enumerate(shards), list[tuple[int, S]](), Counter[int]()
        running: dict[Future[R], tuple[ProcessPoolExecutor, tuple[int, S]]] = {}
        try:
            while True:
                while len(running) < self.workers and (
                    item := again.pop() if again else next(todo, None)
                ):
                    # Pools of one process each: the death of one leaves the others at work.
                    pool = self._idle.pop() if self._idle else process_pool(1)
                    running[pool.submit(work, item[1])] = pool, item
                if not running:
                    return
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    pool, (number, shard) = running.pop(ended)
                    if isinstance(ended.exception(), BrokenProcessPool):
                        deaths[number] += 1
                        if deaths[number] == _MOST_DEATHS:
                            raise WorkerError(f"{_MOST_DEATHS} processes ended on one shard")
                        again.append((number, shard))
                        continue
                    self._idle.append(pool)
                    yield number, ended.result()
        finally:
            for pool, _ in running.values():
                for process in pool._processes.values():  # Python 3.14 has a method for it
                    process.terminate()


def find_executor(workers: int) -> Executor:
    """Return the executor with so many workers."""
    return IN_PROCESS if workers == 1 else Processes(workers)


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
