"""Tables of energy and the warehouse: returns of every baseline, ties, and tests of the optimum.

    python benchmarks/control_tables.py energy                        every level, 100 test Tasks
    python benchmarks/control_tables.py warehouse pick --tasks 500
    python benchmarks/control_tables.py energy --tasks 200 --markdown docs/tables.md

Two tables per world. The first has one row per level and one column per policy: mean return with
95 % interval, and how often it broke a rule. The second has, per level, how often pairs of rollouts
of the noisy policy tie, with the graded floor and with a flat one; the result of a search for
something better than the optimum; and the time to draw and solve a Task.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tokengym.agents.analysis.evaluate import play_all, play_group
from tokengym.agents.analysis.markdown import keyed_table, write_block
from tokengym.envs import World, baselines, make_world
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.energy.oracle import optimum, simulate
from tokengym.envs.energy.plants import plant_from
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.ties import tie_statistics

GROUP_SIZE = 16
GROUPS = 100
SEARCHES = 10

Runs = Mapping[str, Sequence[PlayedEpisode]]
"""Episodes of each baseline, one per Task."""
Cells = Mapping[str, str]
"""A row of a table by column."""


def violations(records: Sequence[PlayedEpisode]) -> float:
    """Return the share of energy episodes that broke the floor."""
    return statistics.fmean(record.metrics["safety_floor_mass"] for record in records)


def refusals(records: Sequence[PlayedEpisode]) -> float:
    """Return the share of a warehouse's turns whose reply was refused."""
    turns = sum(record.metrics["turns"] for record in records)
    return sum(record.metrics["refused"] for record in records) / turns


def shake_plans(world: World, tasks: Sequence[Task], runs: Runs) -> Cells:
    """Perturb optimal energy plans, slightly to strongly, and look for a cheaper safe run."""
    rng = np.random.default_rng(2)
    shaken = safe = 0
    closest = float("inf")
    for task in tasks:
        plant = plant_from(task.instance)
        best = optimum(plant)
        if best is None:
            raise RuntimeError(f"a drawn Task has no optimum: {task.fingerprint}")
        for size in np.geomspace(1e-3, 10.0, SEARCHES):
            plan = tuple(
                tuple(power + size * rng.normal() * (rng.random() < 0.3) for power in command)
                for command in best.commands
            )
            run = simulate(plant, plan)
            shaken += 1
            if not any(run.safety):
                safe += 1
                closest = min(closest, run.money - best.cost)
    return {
        "shaken plans, safe": f"{shaken}, {safe}",
        "least cost of these above the optimum": f"{closest:.0e}" if safe else "",
    }


def strayed(policies: Mapping[str, Policy], names: Sequence[str], turns: int) -> Policy:
    """Follow the oracle for `turns` turns, then a random one of `names` at each turn."""
    replies = 0

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        nonlocal replies
        replies += 1
        name = "oracle" if replies <= turns else names[int(rng.integers(len(names)))]
        return policies[name](world, turn, rng)

    return reply


def leave_plans(world: World, tasks: Sequence[Task], runs: Runs) -> Cells:
    """Leave the oracle's plan for a shift early or late, and look for a run that earns more."""
    policies, rng, role = baselines(world.spec.id), np.random.default_rng(2), world.spec.roles[0]
    names = [name for name in policies if name not in ("oracle", "null")]
    gains = []
    for task, best in zip(tasks, runs["oracle"], strict=True):
        for _ in range(SEARCHES):
            policy = strayed(policies, names, int(rng.integers(len(best.replies))))
            gains.append(play(world, task, policy, rng).returns[role] - best.returns[role])
    above = sum(
        run.returns[role] > best.returns[role]
        for records in runs.values()
        for run, best in zip(records, runs["oracle"], strict=True)
    )
    return {
        "baseline runs above the oracle": str(above),
        "searched runs, above the oracle": f"{len(gains)}, {sum(gain > 0.0 for gain in gains)}",
        "best of these, beyond the oracle": f"{max(gains):+.5f}",
    }


@dataclass(frozen=True)
class ControlWorld:
    """What differs between the worlds' tables.

    Attributes:
        trouble: what can go wrong, in words.
        rate: share of episodes or turns in which it does.
        search: looks for something better than the optimum; returns columns of the second table.
    """

    trouble: str
    rate: Callable[[Sequence[PlayedEpisode]], float]
    search: Callable[[World, Sequence[Task], Runs], Cells]


WORLDS: Mapping[str, ControlWorld] = {
    "energy": ControlWorld("episodes that broke the floor", violations, shake_plans),
    "warehouse": ControlWorld("turns whose reply was refused", refusals, leave_plans),
}


def measure(name: str, level: str, count: int) -> dict[str, Cells]:
    """Return one level's rows: `returns` and `ties`."""
    world, known = make_world(name, level), baselines(name)
    role = world.spec.roles[0]
    tasks, seconds = [], []
    for index in range(count):
        start = time.perf_counter()
        tasks.append(world.task("test", index))
        seconds.append(time.perf_counter() - start)
    runs = {policy: play_all(world, tasks, known[policy]) for policy in known}
    shares = {policy: f"{WORLDS[name].rate(records):.0%}" for policy, records in runs.items()}
    returns = {
        policy: str(mean_estimate([run.returns[role] for run in records]))
        + (f", {shares[policy]}" if shares[policy] != "0%" else "")
        for policy, records in runs.items()
    }
    groups = [play_group(world, task, known["noisy"], GROUP_SIZE) for task in tasks[:GROUPS]]
    rewards_NG = np.array([[run.returns[role] for run in group] for group in groups])
    floor = world.spec.flat_floor
    assert floor is not None
    ties = " / ".join(
        f"{tie_statistics(found_NG)['reward_tie_pair_rate']:.3f}"
        for found_NG in (rewards_NG, floor.flattened(rewards_NG))
    )
    exact = all(world.optimum(task)[role].exact for task in tasks)
    return {
        "returns": {"Tasks": str(count), **returns},
        "ties": {
            "optimum": "exact" if exact else "bound",
            "tied pairs": ties,
            **WORLDS[name].search(world, tasks, runs),
            "ms to draw and solve": f"{1e3 * statistics.median(seconds):.1f}",
        },
    }


def markdown(name: str, levels: Mapping[str, Mapping[str, Cells]]) -> str:
    """Return both tables, each with a line that describes its cells."""
    returns, ties = (
        keyed_table("level", {level: found[part] for level, found in levels.items()})
        for part in ("returns", "ties")
    )
    return (
        f"Mean return ± half of its 95 % interval, and the share of {WORLDS[name].trouble}, "
        "if any:\n\n"
        f"{returns}\n\n"
        "Share of pairs within a group of `noisy` that tie, graded floor / flat floor; the result "
        "of a search for\nsomething better than the optimum; median milliseconds:"
        f"\n\n{ties}"
    )


def main() -> None:
    """Measure the levels asked for, and print or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("world", choices=list(WORLDS))
    parser.add_argument("levels", nargs="*", metavar="level", help="all levels if none")
    parser.add_argument("--tasks", type=int, default=100, help="test Tasks per level")
    parser.add_argument("--json", type=Path, help="file that keeps finished levels")
    parser.add_argument("--markdown", type=Path, help="a page with a block for this world's tables")
    arguments = parser.parse_args()
    kept: Path | None = arguments.json
    done = json.loads(kept.read_text()) if kept is not None and kept.is_file() else {}
    levels = arguments.levels or spec(arguments.world).levels
    for level in levels:
        if level not in done:
            print(f"{arguments.world} {level} ...", flush=True)
            done[level] = measure(arguments.world, level, arguments.tasks)
        if kept is not None:
            kept.write_text(json.dumps(done, indent=1) + "\n")
    shown = markdown(arguments.world, {level: done[level] for level in levels})
    if arguments.markdown is None:
        print(shown)
    else:
        write_block(arguments.markdown, f"control_tables.py {arguments.world}", shown)


if __name__ == "__main__":
    main()
