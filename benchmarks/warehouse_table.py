"""The warehouse in figures: what every baseline earns at every level, and how often returns tie.

    python benchmarks/warehouse_table.py                      every level, 100 test Tasks
    python benchmarks/warehouse_table.py pick stock --tasks 500

Per level: mean return with 95 % interval and refusals per turn of every baseline; per group size
the pair rate of ties among rollouts of the noisy policy, with the graded floor and with a flat one
that pays 0 below the reference; the closest any run found by chance came to the oracle, where runs
follow the oracle for a while and then any policy; and the time to draw and solve a Task.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from tokengym.agents.evaluate import estimate
from tokengym.agents.rollout import Record, play
from tokengym.envs import World, baselines, make_world, specs
from tokengym.envs.catalogue import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.rewards.ties import tie_statistics

GROUP_SIZES = (4, 8, 16)
GROUPS = 100
SEARCHES = 10
ROLE = "lead"


@dataclass(frozen=True)
class Search:
    """What a search for something better than the oracle found.

    Attributes:
        runs: runs tried.
        better: runs that earned more than the oracle on their Task.
        closest: greatest return above the oracle's, negative if none was above it.
    """

    runs: int
    better: int
    closest: float


def played(world: World, tasks: Sequence[Task], name: str) -> list[Record]:
    """Play one policy on each Task."""
    policy, rng = baselines("warehouse")[name], np.random.default_rng(0)
    return [play(world, task, policy, rng) for task in tasks]


def refusals(records: Sequence[Record]) -> float:
    """Return the share of turns whose reply was refused."""
    turns = sum(record.metrics["turns"] for record in records)
    return sum(record.metrics["refused"] for record in records) / turns


def pair_rates(world: World, tasks: Sequence[Task]) -> tuple[list[float], list[float]]:
    """By group size, the pair rate of ties of the noisy policy with the graded and a flat floor."""
    policy, rng = baselines("warehouse")["noisy"], np.random.default_rng(1)
    graded, flat = [], []
    for task in tasks[:GROUPS]:
        records = [play(world, task, policy, rng) for _ in range(max(GROUP_SIZES))]
        graded.append([record.returns[ROLE] for record in records])
        flat.append(
            [
                record.returns[ROLE] if record.metrics["normalized_score"] >= 0.0 else 0.0
                for record in records
            ]
        )
    one, other = (
        [
            tie_statistics([group[:size] for group in groups])["reward_tie_pair_rate"]
            for size in GROUP_SIZES
        ]
        for groups in (graded, flat)
    )
    return one, other


def strayed(policies: Mapping[str, Policy], names: Sequence[str], turns: int) -> Policy:
    """Follow the oracle for `turns` turns, then one of `names` drawn anew at each turn."""
    spoken = 0

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        nonlocal spoken
        spoken += 1
        name = "oracle" if spoken <= turns else names[int(rng.integers(len(names)))]
        return policies[name](world, turn, rng)

    return reply


def search(world: World, tasks: Sequence[Task], best: Sequence[Record]) -> Search:
    """Leave the oracle's plan early or late and try anything else from there."""
    policies, rng = baselines("warehouse"), np.random.default_rng(2)
    names = [name for name in policies if name not in ("oracle", "null")]
    gains = []
    for task, record in zip(tasks, best, strict=True):
        for _ in range(SEARCHES):
            policy = strayed(policies, names, int(rng.integers(len(record.replies))))
            gains.append(play(world, task, policy, rng).returns[ROLE] - record.returns[ROLE])
    return Search(len(gains), sum(gain > 0.0 for gain in gains), max(gains))


def report(console: Console, level: str, count: int) -> None:
    """Print one level's table."""
    world = make_world("warehouse", level)
    tasks, seconds = [], []
    for index in range(count):
        begun = time.perf_counter()
        tasks.append(world.task("test", index))
        seconds.append(time.perf_counter() - begun)
    table = Table(title=f"Warehouse-v0 {level}, {count} test Tasks")
    for column in ("policy", "return", "refusals"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    records = {name: played(world, tasks, name) for name in baselines("warehouse")}
    for name, runs in records.items():
        earned = [run.returns[ROLE] for run in runs]
        table.add_row(name, str(estimate(earned)), f"{refusals(runs):.1%}")
    console.print(table)
    above = sum(
        run.returns[ROLE] > best.returns[ROLE]
        for runs in records.values()
        for run, best in zip(runs, records["oracle"], strict=True)
    )
    graded, flat = pair_rates(world, tasks)
    for size, one, other in zip(GROUP_SIZES, graded, flat, strict=True):
        console.print(f"ties of noisy at G = {size}: graded {one:.4f}, flat {other:.4f}")
    found = search(world, tasks, records["oracle"])
    kind = "exact" if world.optimum(tasks[0])[ROLE].exact else "a bound"
    console.print(
        f"The optimum is {kind}. {above} baseline runs and {found.better} of {found.runs} searched "
        f"runs earned more than the oracle; the best of these {found.closest:+.5f}. "
        f"Draw and solve: {1e3 * statistics.median(seconds):.1f} ms a Task.\n"
    )


def main() -> None:
    """Print the tables of the levels asked for."""
    levels = specs()["tokengym/Warehouse-v0"].levels
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("levels", nargs="*", default=levels, metavar="level")
    parser.add_argument("--tasks", type=int, default=100)
    arguments = parser.parse_args()
    console = Console(width=100)
    for level in arguments.levels:
        report(console, level, arguments.tasks)


if __name__ == "__main__":
    main()
