"""How long the event loop is held up by thousands of live episodes.

All worlds at once: each group's members open together, a sampler that costs nothing answers in
bursts, and ended groups make place for new ones, whose Tasks are drawn meanwhile as training draws
them. A stall is the processor time of one pass of the loop; an episode's memory is what the process
grew by, Tasks included, over the live episodes, after ten seconds with a group of each world. Run
it with `python benchmarks/event_loop.py`; it takes about two minutes and exits with 1 if a bound is
missed.
"""

from tokengym.agents.execution.memory import set_up_memory

set_up_memory()  # As in a command: before anything that is imported starts threads.

import argparse
import asyncio
import resource
import sys
from collections.abc import Sequence
from time import perf_counter, thread_time
from typing import NamedTuple

import numpy as np
import tinker
from tinker_cookbook.completers import StopCondition, TokenCompleter, TokensWithLogprobs
from tinker_cookbook.rl.rollouts import do_group_rollout

from tokengym.agents.tinker.dataset import TaskDataset, TaskDatasetBuilder
from tokengym.envs.registry import baselines, make_world

LEVELS = (
    ("forecast", "easy"),
    ("energy", "small"),
    ("energy", "commit"),
    ("warehouse", "pick"),
    ("warehouse", "stock"),
    ("disruption", "L2"),
)
MOST_STALL_S = 0.010
MOST_EPISODE_KB = 64
GROUP_SIZE = 16
BURSTS_S = 0.25
WARM_S = 10.0


class Bursts(TokenCompleter):
    """Answers every quarter of a second all that was asked, with tokens that are no good reply."""

    def __init__(self, reply: Sequence[int]) -> None:
        self._reply = list(reply)
        self._asked: list[asyncio.Future[None]] = []

    async def __call__(
        self,
        model_input: tinker.ModelInput,
        stop: StopCondition,
        *,
        max_tokens: int | None = None,
    ) -> TokensWithLogprobs:
        """Wait for the next burst."""
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(answered)
        await answered
        return TokensWithLogprobs(list(self._reply), [-1.0] * len(self._reply), "stop")

    async def answer(self) -> None:
        """Answer in bursts, for ever."""
        while True:
            await asyncio.sleep(BURSTS_S)
            asked, self._asked = self._asked, []
            for future in asked:
                if not future.done():
                    future.set_result(None)


class Measured(NamedTuple):
    """What a measurement found.

    Attributes:
        passes: seconds of processor time of each pass of the loop.
        grown: kB by which the process grew.
        groups: how many groups were played.
    """

    passes: list[float]
    grown: int
    groups: int


async def measure(episodes: int, seconds: float, codec: str) -> Measured:
    """Play groups of all worlds for some seconds."""
    passes: list[float] = []

    async def beat() -> None:
        while True:
            begun = thread_time()
            await asyncio.sleep(0)
            passes.append(thread_time() - begun)

    worlds = [await _dataset(*level, codec) for level in LEVELS]
    sampler = Bursts(b"7")
    background = [asyncio.ensure_future(one) for one in (sampler.answer(), beat())]
    # What a process keeps for all its episodes, such as solvers' threads, is there before they are.
    warm = perf_counter() + WARM_S
    await asyncio.gather(*[_play(world, 1 << 19, sampler, warm) for world in worlds])
    passes.clear()
    before = _peak_kb()
    groups = episodes // GROUP_SIZE
    places = [(worlds[place % len(worlds)], place) for place in range(groups)]
    end = perf_counter() + seconds
    players = [asyncio.ensure_future(_play(world, place, sampler, end)) for world, place in places]
    played = await asyncio.gather(*players)
    for one in background:
        one.cancel()
    return Measured(passes, _peak_kb() - before, sum(played))


async def _dataset(world: str, level: str, codec: str) -> TaskDataset:
    row = make_world(world, level).spec
    others = {role: "null" for role in row.roles[1:] if "null" in baselines(row.id)}
    builder = TaskDatasetBuilder(
        world=world,
        level=level,
        codec=codec,
        n_batches=1 << 20,
        groups_per_batch=1,
        group_size=GROUP_SIZE,
        opponents=others,
    )
    return (await builder())[0]


async def _play(dataset: TaskDataset, place: int, sampler: Bursts, end: float) -> int:
    """Play one group after the other; returns how many."""
    played = 0
    while perf_counter() < end:
        (group,) = await asyncio.to_thread(dataset.get_batch, place)
        await do_group_rollout(group, sampler)
        place += 4096
        played += 1
    return played


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    """Run the benchmark; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--episodes", type=int, default=4096)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--codec", default="byte", help="byte, or renderer@tokenizer")
    options = parser.parse_args()
    found = asyncio.run(measure(options.episodes, options.seconds, options.codec))
    passes = np.sort(found.passes)
    # Passes in which nothing happened are left out: they would hide the others.
    busy = passes[passes > 1e-4]
    p99, worst = float(np.quantile(busy, 0.99)), float(busy[-1])
    each = found.grown / options.episodes
    print(
        f"{options.episodes} episodes at a time, {found.groups} groups of {GROUP_SIZE}, "
        f"{len(busy)} busy passes of the loop: "
        f"p50 {np.median(busy) * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms (at most "
        f"{MOST_STALL_S * 1e3:.0f}), longest {worst * 1e3:.0f} ms; "
        f"{each:.0f} kB an episode (at most {MOST_EPISODE_KB})"
    )
    return int(p99 > MOST_STALL_S or each > MOST_EPISODE_KB)


if __name__ == "__main__":
    sys.exit(main())
