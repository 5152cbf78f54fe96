"""The energy world in figures: what every baseline earns at every level, and how often returns tie.

    python benchmarks/energy_table.py                     every level, 100 test Tasks
    python benchmarks/energy_table.py small day --tasks 500

Per level: mean return with 95 % interval, share of episodes that broke the floor, and per group
size the pair rate of ties among rollouts of the noisy policy, with the graded and the flat floor.
The last line tells whether any run found by shaking the optimal plan or by chance was safe and
cheaper than the optimum, and how long the optimum took.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from tokengym.agents.evaluate import estimate
from tokengym.agents.rollout import play
from tokengym.envs import World, baselines, make_world, specs
from tokengym.envs.core.task import Task
from tokengym.envs.energy.oracle import optimum, replay
from tokengym.envs.energy.world import plant_from
from tokengym.rewards.ties import tie_statistics

GROUP_SIZES = (4, 8, 16)
GROUPS = 100
SEARCHES = 10


@dataclass(frozen=True)
class Search:
    """What a search for something better than the optimum found.

    Attributes:
        tasks: Tasks searched.
        runs: runs tried.
        safe: runs that broke no floor.
        closest: least money any safe run spent beyond its Task's optimum.
        median: median milliseconds to solve a Task for its optimum.
    """

    tasks: int
    runs: int
    safe: int
    closest: float
    median: float


def returns(world: World, tasks: Sequence[Task], name: str) -> tuple[list[float], float]:
    """Returns of one policy on each Task, and the share of them that broke the floor."""
    policy, rng = baselines("energy")[name], np.random.default_rng(0)
    records = [play(world, task, policy, rng) for task in tasks]
    broken = statistics.fmean(record.metrics["safety_floor_mass"] for record in records)
    return [record.returns["operator"] for record in records], broken


def pair_rates(world: World, tasks: Sequence[Task]) -> list[float]:
    """By group size, the pair rate of ties among rollouts of the noisy policy."""
    policy, rng = baselines("energy")["noisy"], np.random.default_rng(1)
    groups = [
        [play(world, task, policy, rng).returns["operator"] for _ in range(max(GROUP_SIZES))]
        for task in tasks[:GROUPS]
    ]
    return [
        tie_statistics([group[:size] for group in groups])["reward_tie_pair_rate"]
        for size in GROUP_SIZES
    ]


def search(tasks: Sequence[Task]) -> Search:
    """Shake optimal plans a little and a lot, and try anything, for a safe run that is cheaper."""
    rng = np.random.default_rng(2)
    runs = safe = 0
    closest, seconds = float("inf"), []
    for task in tasks:
        plant = plant_from(task.instance)
        begun = time.perf_counter()
        best = optimum(plant)
        seconds.append(time.perf_counter() - begun)
        if best is None:
            raise RuntimeError(f"a drawn Task has no optimum: {task.fingerprint}")
        for size in np.geomspace(1e-3, 10.0, SEARCHES):
            shaken = tuple(
                tuple(power + size * rng.normal() * (rng.random() < 0.3) for power in command)
                for command in best.commands
            )
            run = replay(plant, shaken)
            runs += 1
            if not any(run.safety):
                safe += 1
                closest = min(closest, run.money - best.cost)
    return Search(len(tasks), runs, safe, closest, 1e3 * statistics.median(seconds))


def report(console: Console, level: str, count: int) -> None:
    """Print one level's table."""
    world = make_world("energy", level)
    tasks = [world.task("test", index) for index in range(count)]
    table = Table(title=f"Energy-v0 {level}, {count} test Tasks")
    for column in ("policy", "return", "violations"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for name in baselines("energy"):
        earned, broken = returns(world, tasks, name)
        table.add_row(name, str(estimate(earned)), f"{broken:.0%}")
    console.print(table)
    graded = pair_rates(world, tasks)
    flat = pair_rates(make_world("energy", level, flat_floor=True), tasks)
    for size, one, other in zip(GROUP_SIZES, graded, flat, strict=True):
        console.print(f"ties of noisy at G = {size}: graded {one:.4f}, flat {other:.4f}")
    found = search(tasks)
    console.print(
        f"{found.safe} of {found.runs} runs near {found.tasks} optima were safe; the closest spent "
        f"{found.closest:.1e} beyond its optimum. Optimum: {found.median:.1f} ms a Task.\n"
    )


def main() -> None:
    """Print the tables of the levels asked for."""
    levels = specs()["tokengym/Energy-v0"].levels
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("levels", nargs="*", default=levels, metavar="level")
    parser.add_argument("--tasks", type=int, default=100)
    arguments = parser.parse_args()
    console = Console(width=100)
    for level in arguments.levels:
        report(console, level, arguments.tasks)


if __name__ == "__main__":
    main()
