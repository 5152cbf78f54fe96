"""What the scripted policies of every world earn on held-out Tasks, and how often a noisy one ties.

    python benchmarks/baselines.py                       every world, its first level
    python benchmarks/baselines.py --all --tasks 200     every level
    python benchmarks/baselines.py forecast warehouse    these worlds

Means with 95 % intervals over Tasks, each played once. The optimum is exact unless it is marked a
bound. Tied pairs are of the world's noisy policy (`random` where it has none), 8 rollouts a Task.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from tokengym.agents.evaluate import estimate, evaluate
from tokengym.agents.rollout import play
from tokengym.envs import World, baselines, make_world, specs
from tokengym.envs.catalogue import spec
from tokengym.envs.core.task import Task
from tokengym.rewards.ties import tie_statistics

GROUP_SIZE = 8
GROUPS = 40
SEARCHES_ON_THE_WAY = ("mpc",)
"""Policies that solve a program at every step and are left out here."""


def tied_pairs(world: World, tasks: Sequence[Task]) -> float:
    """Pair rate of ties among rollouts of the noisy policy."""
    known = baselines(world.spec.id)
    policy = known.get("noisy", known["random"])
    rng, role = np.random.default_rng(0), world.spec.roles[0]
    groups = [
        [play(world, task, policy, rng).returns[role] for _ in range(GROUP_SIZE)]
        for task in tasks[:GROUPS]
    ]
    return tie_statistics(groups)["reward_tie_pair_rate"]


def measure(world_id: str, level: str, count: int) -> Table:
    """Return the table of one level."""
    world = make_world(world_id, level)
    tasks = [world.task("test", index) for index in range(count)]
    limits = [world.optimum(task)[world.spec.roles[0]] for task in tasks]
    kind = "optimum" if all(limit.exact for limit in limits) else "bound"
    table = Table(
        "policy",
        "mean return",
        title=f"{world_id} {level}: {count} Tasks, tied pairs {tied_pairs(world, tasks):.3f}",
        title_justify="left",
    )
    found = {
        name: evaluate(world, tasks, policy)
        for name, policy in baselines(world_id).items()
        if name not in SEARCHES_ON_THE_WAY
    }
    for name, value in sorted(found.items(), key=lambda item: item[1].mean):
        table.add_row(name, str(value))
    table.add_row(kind, str(estimate([limit.value for limit in limits])))
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worlds", nargs="*", help="ids or short names; all if none")
    parser.add_argument("--all", action="store_true", help="every level, not the first alone")
    parser.add_argument("--tasks", type=int, default=200, help="test Tasks a level")
    arguments = parser.parse_args()
    console = Console()
    for row in [spec(name) for name in arguments.worlds] or specs().values():
        for level in row.levels if arguments.all else row.levels[:1]:
            console.print(measure(row.id, level, arguments.tasks))


if __name__ == "__main__":
    main()
