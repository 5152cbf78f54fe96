"""Text steps per second of every world and the time to draw a Task, compared with CartPole-v1.

    python -m benchmarks.world_steps            every world, its first level
    python -m benchmarks.world_steps --all      every level
    python -m benchmarks.world_steps --all energy
    python -m benchmarks.world_steps --guard    fail if steps have become slower
    python -m benchmarks.world_steps --all --markdown docs/results.md

Three figures stand side by side, each with its like: the world alone on stored Tasks beside
CartPole's class alone; the environment of `gymnasium.make`, whose every `reset` draws a new Task,
beside the CartPole of `gymnasium.make`, resets included on both sides; and the same environment on
one Task again and again, with the share of its time that the world alone does not take: that of the
adapter, of Gymnasium's wrappers and of opponents. They take turns, and what is compared is the
processor time that a step takes on average over all rounds: drifts in the machine's speed and other
work on it favour neither. Replies are prepared before the clock starts. The time to draw a Task
includes its oracle; the first one, which loads the solver, is not timed.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs import World, baselines, make_world, spec, specs
from tokengym.envs.core import world as core
from tokengym.envs.core.play import PlayedEpisode, play
from tokengym.envs.gymnasium.env import TextEnv

TASKS = 24
ROUNDS = 15
SECONDS = 0.04
EPISODES = 300
TOLERANCE = 0.25
HEADER = [
    *("world", "level", "world alone, steps/s", "÷ CartPole alone", "rounds"),
    *("`make`, new Tasks, steps/s", "÷ `make` CartPole", "rounds"),
    *("`make`, one Task, steps/s", "÷ `make` CartPole", "beyond the world"),
    *("ms per Task, oracle included", "Tasks/s"),
]

Work = Iterator[int]
"""Yields a number of steps each time that it has taken so many."""


class Ratios(NamedTuple):
    """Steps of a level ÷ CartPole's.

    Attributes:
        alone: of the world without an environment, on stored Tasks.
        made: of the environment that `gymnasium.make` returns, which draws a Task at each reset.
        one_task: of the same on one Task.
    """

    alone: float
    made: float
    one_task: float


GUARDED = {
    ("forecast", "easy"): Ratios(0.88, 0.019, 0.42),
    ("energy", "small"): Ratios(0.51, 0.044, 0.54),
    ("disruption", "L2"): Ratios(0.200, 0.018, 0.080),
    ("warehouse", "pick"): Ratios(0.70, 0.011, 0.54),
}
"""As measured when they were last made faster or slower."""


def cartpole(env: gymnasium.Env[np.ndarray, int]) -> Work:
    """Step CartPole-v1, resets included."""
    env.reset(seed=0)
    for step in itertools.count():
        _, _, terminated, truncated, _ = env.step(step & 1)
        if terminated or truncated:
            env.reset()
        yield 1


def cartpole_episode_seconds() -> float:
    """Median time of an episode of CartPole-v1 under a uniformly random policy, reset included."""
    env = gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(0)
    times = []
    for seed in range(EPISODES):
        actions = rng.integers(2, size=500).tolist()
        start = time.process_time()
        env.reset(seed=seed)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        times.append(time.process_time() - start)
    return statistics.median(times)


def prepare(world: World) -> tuple[list[PlayedEpisode], list[float]]:
    """Draw Tasks and play them once; returns the records and the seconds each Task took."""
    world.task("validation", 0)
    tasks, times = [], []
    for index in range(TASKS):
        start = time.process_time()
        tasks.append(world.task("train", index))
        times.append(time.process_time() - start)
    name = "noisy" if "noisy" in baselines(world.spec.id) else "random"
    policy = baselines(world.spec.id)[name]
    return [play(world, task, policy) for task in tasks], times


def alone(world: World, records: Sequence[PlayedEpisode]) -> Work:
    """Answer replies on stored Tasks, starts included."""
    for record in itertools.cycle(records):
        world.start(record.task)
        for reply in record.replies:
            world.reply(reply)
        yield len(record.replies)


def made(world: World, records: Sequence[PlayedEpisode], *, one_task: bool = False) -> Work:
    """Step the environment of `gymnasium.make`, whose resets draw the Tasks of records or give one.

    Replies are those of the role that is played; opponents answer within a step.
    """
    env = gymnasium.make(world.spec.id, level=world.level, mode="text", split="train")
    assert isinstance(env.unwrapped, TextEnv)
    role = env.unwrapped.role
    for number, record in enumerate(itertools.cycle(records[:1] if one_task else records)):
        if not one_task and number % len(records) == 0:
            core._compile.cache_clear()  # new Tasks are compiled too
        place = {"task": record.task} if one_task else {"index": record.task.index}
        env.reset(seed=0 if number == 0 else None, options=place)
        steps = 0
        for turn, reply in zip(record.turns, record.replies, strict=False):
            if turn.role == role:
                _, _, terminated, truncated, _ = env.step(reply)
                steps += 1
                if terminated or truncated:
                    break
        yield steps


def timed(work: Work) -> tuple[int, float]:
    """Let work go on for a while; returns its steps and their processor time in seconds."""
    steps = 0
    start = time.process_time()
    while (taken := time.process_time() - start) < SECONDS:
        steps += next(work)
    return steps, taken


class Compared(NamedTuple):
    """A measure beside CartPole's.

    Attributes:
        rate: steps per second.
        ratio: to CartPole's, of all rounds.
        ratios: of each.
    """

    rate: float
    ratio: float
    ratios: list[float]

    @property
    def cells(self) -> tuple[str, str, str]:
        """The columns of a table: the rate, the ratio and its range over the rounds."""
        low, high = min(self.ratios), max(self.ratios)
        return f"{self.rate:,.0f}", f"{self.ratio:.3f}", f"{low:.3f} to {high:.3f}"


def compare(world: World, records: Sequence[PlayedEpisode]) -> tuple[list[Compared], float]:
    """Return the three measures of a level, in the order of `Ratios`.

    Returns:
        the measures, and the share of time on one Task that the world alone does not take.
    """
    env = gymnasium.make("CartPole-v1")
    works = [
        *(cartpole(env.unwrapped), alone(world, records)),
        *(cartpole(env), made(world, records), made(world, records, one_task=True)),
        alone(world, records[:1]),
    ]
    for work in works:
        next(work)
    rounds = np.array([[timed(work) for work in works] for _ in range(ROUNDS)])
    steps, taken = np.moveaxis(np.vstack([rounds.sum(0, keepdims=True), rounds]), 2, 0)
    rates = steps / taken  # of all rounds, then of each, by work
    pairs = ((1, 0), (3, 2), (4, 2))
    compared = [
        Compared(rates[0, own], *_split(rates[:, own] / rates[:, reference]))
        for own, reference in pairs
    ]
    # An episode has the replies of all roles and the steps of one.
    replies, own_steps = len(records[0].replies), next(works[4])
    return compared, float(1.0 - rates[0, 4] / own_steps * replies / rates[0, 5])


def _split(ratios: np.ndarray) -> tuple[float, list[float]]:
    return float(ratios[0]), ratios[1:].tolist()


def guard() -> int:
    """Measure the guarded levels; return 1 if a figure of one is lower than it was, twice."""
    slower = 0
    for (name, level), stored in GUARDED.items():
        world = make_world(name, level)
        records, _ = prepare(world)
        found = [one.ratio for one in compare(world, records)[0]]
        least = [(1.0 - TOLERANCE) * ratio for ratio in stored]
        if any(now < limit for now, limit in zip(found, least, strict=True)):
            # Other work on the machine lowers a ratio now and then, a slower step always.
            found = [
                max(now, one.ratio)
                for now, one in zip(found, compare(world, records)[0], strict=True)
            ]
        slower += sum(now < limit for now, limit in zip(found, least, strict=True))
        figures = zip(Ratios._fields, found, least, strict=True)
        shown = [f"{figure} {now:.3f} (at least {limit:.3f})" for figure, now, limit in figures]
        print(f"{name} {level}, steps ÷ CartPole's: {', '.join(shown)}", flush=True)
    if slower:
        print(f"{slower} of {3 * len(GUARDED)} figures are over {TOLERANCE:.0%} lower than stored")
    return min(slower, 1)


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", help="ids or short names of the worlds; all if none")
    parser.add_argument("--all", action="store_true", help="every level, not only the first")
    parser.add_argument("--guard", action="store_true", help="compare with the stored ratios")
    parser.add_argument("--markdown", type=Path, help="page whose block is replaced by the table")
    chosen = parser.parse_args()
    if chosen.guard:
        return guard()
    rows = []
    for row in [spec(name) for name in chosen.worlds] or specs().values():
        for level in row.levels if chosen.all else row.levels[:1]:
            world = make_world(row.id, level)
            records, times = prepare(world)
            compared, share = compare(world, records)
            alone_cells, made_cells, one_task = (one.cells for one in compared)
            measured = (
                *(*alone_cells, *made_cells, *one_task[:2], f"{share:.0%}"),
                f"{statistics.median(times) * 1e3:,.2f}",
                f"{TASKS / sum(times):,.1f}",
            )
            rows.append([row.short_name, f"`{level}`", *measured])
            print(*rows[-1], flush=True)
    text = (
        f"{markdown_table(HEADER, rows)}\n\nMeans of {ROUNDS} rounds in processor time, and the "
        f"range of the rounds; times of Tasks are medians of {TASKS}. An episode of CartPole-v1 "
        f"under a random policy takes {cartpole_episode_seconds() * 1e3:.2f} ms."
    )
    print(text)
    if chosen.markdown:
        write_block(chosen.markdown, "world_steps.py", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
