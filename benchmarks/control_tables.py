"""Tables of energy and the warehouse: returns of every baseline, ties, and tests of the optimum.

    python -m benchmarks.control_tables energy                        every level, 100 test Tasks
    python -m benchmarks.control_tables warehouse pick --tasks 500
    python -m benchmarks.control_tables energy --tasks 200 --markdown docs/tables.md

A table per world, with one row per level and one column per policy: mean return with 95 % interval,
and how often it broke a rule; then how often pairs of rollouts of the noisy policy tie, with the
graded floor and with a flat one, and the time to draw and solve a Task. A line below it says what a
search for something better than the optimum found.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.pages import keyed_table
from tokengym.agents.analysis.markdown import write_block
from tokengym.agents.evaluation.scripted import play_all, play_group
from tokengym.envs import World, baselines, make_world
from tokengym.envs.core.play import PlayedEpisode, Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.energy.oracle import optimum, simulate
from tokengym.envs.energy.plants import plant_from
from tokengym.envs.energy.site import Site
from tokengym.envs.registry import baselines_at, spec
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.ties import tie_statistics

GROUP_SIZE = 16
GROUPS = 100
SEARCHES = 10

Runs = Mapping[str, Sequence[PlayedEpisode]]
"""Episodes of each baseline, one per Task."""
Cells = Mapping[str, str]
"""A row of the table by column."""
Search = Mapping[str, float]
"""What a search for something better than the optimum found, by name."""

SHOWN_ELSEWHERE = (
    *("null", "random", "oracle"),
    *("backward", "textbook", "restarts", "unread", "unread_replan"),
)
"""Baselines that the table of every level has, on docs/worlds.md, or the ladders alone."""
TIED = "tied pairs, graded / flat"
MILLISECONDS = "ms per Task"


def violations(records: Sequence[PlayedEpisode]) -> float:
    """Return the share of energy episodes that broke the floor."""
    return statistics.fmean(record.metrics["safety_floor_mass"] for record in records)


def refusals(records: Sequence[PlayedEpisode]) -> float:
    """Return the share of a warehouse's turns whose reply was refused."""
    turns = sum(record.metrics["turns"] for record in records)
    return sum(record.metrics["refused"] for record in records) / turns


def shake_plans(world: World, tasks: Sequence[Task], runs: Runs) -> Search:
    """Perturb optimal energy plans, slightly to strongly, and look for a cheaper safe run.

    A site has a plan for each day that may come, and no optimum that is proved: it is left out.
    """
    rng = np.random.default_rng(2)
    shaken = safe = 0
    closest = float("inf")
    for task in tasks:
        plant = plant_from(task.instance)
        if isinstance(plant, Site):
            continue
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
    return {"shaken": shaken, "safe": safe, "closest": closest}


def strayed(policies: Mapping[str, Policy], names: Sequence[str], turns: int) -> Policy:
    """Follow the oracle for `turns` turns, then a random one of `names` at each turn."""
    replies = 0

    def reply(world: World, turn: Turn, rng: np.random.Generator) -> str:
        nonlocal replies
        replies += 1
        name = "oracle" if replies <= turns else names[int(rng.integers(len(names)))]
        return policies[name](world, turn, rng)

    return reply


def leave_plans(world: World, tasks: Sequence[Task], runs: Runs) -> Search:
    """Leave the oracle's plan for a shift early or late, and look for a run that earns more."""
    policies, rng, role = baselines(world.spec.id), np.random.default_rng(2), world.spec.roles[0]
    names = [name for name in policies if name not in ("oracle", "null")]
    gains = []
    for task, best in zip(tasks, runs["oracle"], strict=True):
        for number in range(SEARCHES):
            policy = strayed(policies, names, int(rng.integers(len(best.replies))))
            played = play(world, task, policy, seed=number)
            gains.append(played.returns[role] - best.returns[role])
    above = sum(
        run.returns[role] > best.returns[role]
        for records in runs.values()
        for run, best in zip(records, runs["oracle"], strict=True)
    )
    searched = {"searched": len(gains), "better": sum(gain > 0.0 for gain in gains)}
    return {"above": above, **searched, "best": max(gains)}


def shaken(found: Sequence[Search]) -> str:
    """Say what `shake_plans` found at all levels."""
    plans, safe = (sum(int(one[name]) for one in found) for name in ("shaken", "safe"))
    closest = min(one["closest"] for one in found)
    return (
        f"Of {plans:,} random changes to optimal plans, small and large, {safe:,} stayed safe; the "
        f"cheapest of them costs\n{closest:+.0e} ct more than its optimum."
    )


def left(found: Sequence[Search]) -> str:
    """Say what `leave_plans` found at all levels."""
    above, runs, better = (
        sum(int(one[name]) for one in found) for name in ("above", "searched", "better")
    )
    return (
        f"{above} episodes of baselines earned more than the oracle, and {better} of {runs:,} that "
        "follow the oracle at first and\nleave its plan on the way; the best of these earned "
        f"{max(one['best'] for one in found):+.5f} more."
    )


@dataclass(frozen=True)
class ControlWorld:
    """What differs between the worlds' tables.

    Attributes:
        trouble: what can go wrong, in words.
        rate: share of episodes or turns in which it does.
        search: looks for something better than the optimum.
        say: says what the search found at all levels.
    """

    trouble: str
    rate: Callable[[Sequence[PlayedEpisode]], float]
    search: Callable[[World, Sequence[Task], Runs], Search]
    say: Callable[[Sequence[Search]], str]


WORLDS: Mapping[str, ControlWorld] = {
    "energy": ControlWorld("episodes that broke the floor", violations, shake_plans, shaken),
    "warehouse": ControlWorld("turns whose reply was refused", refusals, leave_plans, left),
}


def measure(name: str, level: str, count: int) -> dict[str, Any]:
    """Return what a level is shown with: the `cells` of its row, and what the `search` found."""
    world = make_world(name, level)
    known = baselines_at(world)
    role = world.spec.roles[0]
    tasks, seconds = [], []
    for index in range(count):
        start = time.process_time()
        tasks.append(world.task("test", index))
        seconds.append(time.process_time() - start)
    runs = {policy: play_all(world, tasks, known[policy]) for policy in known}
    groups = [play_group(world, task, known["noisy"], GROUP_SIZE) for task in tasks[:GROUPS]]
    rewards_NG = np.array([[run.returns[role] for run in group] for group in groups])
    floor = world.spec.flat_floor
    assert floor is not None
    ties = " / ".join(
        f"{tie_statistics(found_NG)['reward_tie_pair_rate']:.3f}"
        for found_NG in (rewards_NG, floor.flattened(rewards_NG))
    )
    # The columns are those of the world: a policy that is not for the level has an empty cell.
    cells = {policy: "" for policy in baselines(name) if policy not in SHOWN_ELSEWHERE}
    for policy in cells.keys() & runs.keys():
        returns = [run.returns[role] for run in runs[policy]]
        cells[policy] = returns_cell(returns, f"{WORLDS[name].rate(runs[policy]):.0%}")
    cells |= {TIED: ties, MILLISECONDS: f"{1e3 * statistics.median(seconds):.1f}"}
    return {"cells": cells, "search": WORLDS[name].search(world, tasks, runs)}


def returns_cell(returns: Sequence[float], share: str) -> str:
    """Return a mean, with its interval where returns differ, and the share in trouble, if any."""
    mean = str(mean_estimate(returns)).partition(" (")[0]
    return mean if share == "0%" else f"{mean}, {share}"


def markdown(name: str, levels: Mapping[str, Mapping[str, Any]], count: int) -> str:
    """Return the table, what its cells are, and what the searches found."""
    world, search = WORLDS[name], [found["search"] for found in levels.values()]
    table = keyed_table("level", {level: _short(found["cells"]) for level, found in levels.items()})
    return (
        f"A cell is a baseline's mean return on {count} test Tasks ± half of its 95 % interval (no "
        f"± where all are equal), then the share of\n{world.trouble}, if any. `=` repeats the last "
        "filled cell on its left; an empty one is a baseline that is not for the level.\n"
        f"\n{table}\n\n{world.say(search)}"
    )


def _short(cells: Cells) -> Cells:
    """Return a row in which a cell that repeats the last one with a text is `=`."""
    short, before = {}, ""
    for name, cell in cells.items():
        short[name] = "=" if cell and cell == before else cell
        before = cell or before
    return short


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
    shown = markdown(arguments.world, {level: done[level] for level in levels}, arguments.tasks)
    if arguments.markdown is None:
        print(shown)
    else:
        write_block(arguments.markdown, f"control_tables.py {arguments.world}", shown)


if __name__ == "__main__":
    main()
