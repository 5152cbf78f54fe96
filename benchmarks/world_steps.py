"""Text steps per second of every world beside CartPole-v1 in the same run, and Tasks per second.

    python benchmarks/world_steps.py            every world, its first level
    python benchmarks/world_steps.py --all      every level

Worlds and CartPole take turns in rounds, and the ratio is the median over the rounds, so that a
machine whose speed drifts does not favour either. Replies are prepared before the clock starts.
"""

import argparse
import statistics
import time
from collections.abc import Sequence

import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from tokengym.agents.rollout import Record, play
from tokengym.envs import World, baselines, make_world, specs

TASKS = 24
ROUNDS = 7
SECONDS = 0.15


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


def prepare(world: World) -> tuple[list[Record], float]:
    """Draw Tasks and play them once; returns the records and Tasks drawn per second."""
    start = time.perf_counter()
    tasks = [world.task("train", index) for index in range(TASKS)]
    drawn = TASKS / (time.perf_counter() - start)
    name = "noisy" if "noisy" in baselines(world.spec.id) else "random"
    policy = baselines(world.spec.id)[name]
    rng = np.random.default_rng(0)
    return [play(world, task, policy, rng) for task in tasks], drawn


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
    parser.add_argument("--all", action="store_true", help="every level, not the first alone")
    every = parser.parse_args().all
    table = Table(
        "world",
        "level",
        "text steps/s",
        "÷ CartPole",
        "min to max",
        "Tasks/s, oracle included",
        title=f"Medians of {ROUNDS} rounds",
    )
    for row in specs().values():
        for level in row.levels if every else row.levels[:1]:
            world = make_world(row.id, level)
            records, drawn = prepare(world)
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
                f"{drawn:,.1f}",
            )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
