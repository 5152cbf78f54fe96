"""Text steps per second of every world and the time to draw a Task, compared with CartPole-v1.

    python benchmarks/world_steps.py            every world, its first level
    python benchmarks/world_steps.py --all      every level
    python benchmarks/world_steps.py --all energy

Worlds and CartPole are timed in alternation, and the ratio is the median over the rounds, so that
drifts in the machine's speed favour neither. Replies are prepared before the clock starts. The time
to draw a Task includes its oracle; the first one, which loads the solver, is not timed.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from tokengym.envs import World, baselines, make_world, spec, specs
from tokengym.envs.core.rollout import Record, play

TASKS = 24
ROUNDS = 7
SECONDS = 0.15
EPISODES = 300


def cartpole_steps_per_second(seconds: float) -> float:
    """Steps of CartPole-v1 as `gymnasium.make` gives it, resets included."""
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    steps = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(50):
            _, _, terminated, truncated, _ = env.step(steps & 1)
            steps += 1
            if terminated or truncated:
                env.reset()
    return steps / (time.perf_counter() - start)


def cartpole_episode_seconds() -> float:
    """Median time of an episode of CartPole-v1 under a uniformly random policy, reset included."""
    env = gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(0)
    times = []
    for seed in range(EPISODES):
        actions = rng.integers(2, size=500).tolist()
        start = time.perf_counter()
        env.reset(seed=seed)
        for action in actions:
            _, _, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                break
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def prepare(world: World) -> tuple[list[Record], list[float]]:
    """Draw Tasks and play them once; returns the records and the seconds each Task took."""
    world.task("validation", 0)
    tasks, times = [], []
    for index in range(TASKS):
        start = time.perf_counter()
        tasks.append(world.task("train", index))
        times.append(time.perf_counter() - start)
    name = "noisy" if "noisy" in baselines(world.spec.id) else "random"
    policy = baselines(world.spec.id)[name]
    rng = np.random.default_rng(0)
    return [play(world, task, policy, rng) for task in tasks], times


def world_steps_per_second(world: World, records: Sequence[Record], seconds: float) -> float:
    """Replies answered per second on given Tasks, starts included."""
    steps = 0
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for record in records:
            world.start(record.task)
            for reply in record.replies:
                world.reply(reply)
            steps += len(record.replies)
    return steps / (time.perf_counter() - start)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", help="ids or short names of the worlds; all if none")
    parser.add_argument("--all", action="store_true", help="every level, not only the first")
    chosen = parser.parse_args()
    rows = [spec(name) for name in chosen.worlds] or list(specs().values())
    episode = cartpole_episode_seconds()
    table = Table(
        "world",
        "level",
        "text steps/s",
        "÷ CartPole",
        "min to max",
        "ms per Task, oracle included",
        "Tasks/s",
        title=f"Medians of {ROUNDS} rounds and of {TASKS} Tasks",
        caption=f"An episode of CartPole-v1 under a random policy takes {episode * 1e3:.2f} ms.",
    )
    for row in rows:
        for level in row.levels if chosen.all else row.levels[:1]:
            world = make_world(row.id, level)
            records, times = prepare(world)
            world_steps_per_second(world, records, SECONDS)
            rates, ratios = [], []
            for _ in range(ROUNDS):
                reference = cartpole_steps_per_second(SECONDS)
                rates.append(world_steps_per_second(world, records, SECONDS))
                ratios.append(rates[-1] / reference)
            table.add_row(
                row.id.removeprefix("tokengym/"),
                level,
                f"{statistics.median(rates):,.0f}",
                f"{statistics.median(ratios):.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                f"{statistics.median(times) * 1e3:,.2f}",
                f"{TASKS / sum(times):,.1f}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
