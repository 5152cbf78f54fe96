"""Text steps per second of every world and the time to draw a Task, compared with CartPole-v1.

    python benchmarks/world_steps.py            every world, its first level
    python benchmarks/world_steps.py --all      every level
    python benchmarks/world_steps.py --all energy
    python benchmarks/world_steps.py --guard    fail if steps have become slower
    python benchmarks/world_steps.py --all --markdown docs/measured.md

Worlds and CartPole take turns, and what is compared is the processor time that a step takes on
average over all rounds: drifts in the machine's speed and other work on it favour neither. Replies
are prepared before the clock starts. The time to draw a Task includes its oracle; the first one,
which loads the solver, is not timed.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import gymnasium
import numpy as np

from tokengym.agents.analysis.markdown import markdown_table, write_block
from tokengym.envs import World, baselines, make_world, spec, specs
from tokengym.envs.core.play import PlayedEpisode, play

TASKS = 24
ROUNDS = 15
SECONDS = 0.1
EPISODES = 300
GUARDED = {
    ("forecast", "easy"): 1.2,
    ("energy", "small"): 1.0,
    ("disruption", "L2"): 0.55,
    ("warehouse", "pick_small"): 0.9,
}
"""Steps of these levels ÷ CartPole's, as measured when they were last made faster or slower."""
TOLERANCE = 0.25
HEADER = [
    *("world", "level", "steps/s", "÷ CartPole", "rounds"),
    *("ms a Task, oracle included", "Tasks/s"),
]


def cartpole_time(seconds: float) -> tuple[int, float]:
    """Steps of CartPole-v1 as `gymnasium.make` gives it, resets included, and their time."""
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    steps = 0
    start = time.process_time()
    while (taken := time.process_time() - start) < seconds:
        for _ in range(50):
            _, _, terminated, truncated, _ = env.step(steps & 1)
            steps += 1
            if terminated or truncated:
                env.reset()
    return steps, taken


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
    np.random.default_rng(0)
    return [play(world, task, policy) for task in tasks], times


def world_time(world: World, records: Sequence[PlayedEpisode], seconds: float) -> tuple[int, float]:
    """Replies answered on given Tasks, starts included, and their time."""
    steps = 0
    start = time.process_time()
    while (taken := time.process_time() - start) < seconds:
        for record in records:
            world.start(record.task)
            for reply in record.replies:
                world.reply(reply)
            steps += len(record.replies)
    return steps, taken


def compare(world: World, records: Sequence[PlayedEpisode]) -> tuple[float, list[float]]:
    """Return a world's steps per second, and its ratio to CartPole: of all rounds, then of each."""
    world_time(world, records, SECONDS)
    rounds = np.array(
        [(*cartpole_time(SECONDS), *world_time(world, records, SECONDS)) for _ in range(ROUNDS)]
    )
    steps, taken, own_steps, own_taken = np.vstack([rounds.sum(0), rounds]).T
    ratios = own_steps / own_taken * taken / steps
    return own_steps[0] / own_taken[0], ratios.tolist()


def guard() -> int:
    """Measure the guarded levels; return 1 if one is slower than it was."""
    slower = 0
    for (name, level), stored in GUARDED.items():
        world = make_world(name, level)
        _, (ratio, *_) = compare(world, prepare(world)[0])
        slower += ratio < (1.0 - TOLERANCE) * stored
        print(f"{name} {level}: {ratio:.2f} times CartPole's steps, {stored:.2f} stored")
    if slower:
        print(f"{slower} of {len(GUARDED)} levels are over {TOLERANCE:.0%} slower than stored")
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
            rate, (ratio, *ratios) = compare(world, records)
            measured = (
                f"{rate:,.0f}",
                f"{ratio:.2f}",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
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
