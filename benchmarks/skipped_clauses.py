"""What it costs to skip a clause of `pick_clauses`: the table of `docs/worlds/warehouse.md`.

    python -m benchmarks.skipped_clauses --markdown docs/worlds/warehouse.md

The exact search plays test Tasks anew at every trip, once reading all clauses but one, and once
reading none. Takes a few minutes.
"""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.pages import write_block
from tokengym.agents.reports.markdown import markdown_table
from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world
from tokengym.envs.warehouse.games.picking.baselines import reading
from tokengym.envs.warehouse.games.picking.clauses import CLAUSES, WORDINGS, Clause
from tokengym.envs.warehouse.games.picking.oracle import best_command
from tokengym.envs.warehouse.games.picking.orders import read_shift
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import Trip, Wait
from tokengym.rewards.estimates import Estimate, mean_estimate

BLOCK = "benchmarks.skipped_clauses"
HEADER = ("clause", "as validation words it", "Tasks", "skipped, it costs", "no clause read")
_OF_VALIDATION = 3


class Skipped(NamedTuple):
    """What one Task earns: with every clause read, with all but one, and with none."""

    all_read: float
    but_one: float
    none_read: float


def skipped(task: Task) -> dict[str, Skipped]:
    """Play a Task without each of its clauses, by their kinds."""
    clauses = read_shift(task.instance)[0].clauses
    best, none = earned(task, clauses), earned(task, ())
    kinds = [entry["kind"] for entry in task.instance["clauses"]]
    rest = [[other for other in clauses if other is not clause] for clause in clauses]
    return {
        kind: Skipped(best, earned(task, read), none)
        for kind, read in zip(kinds, rest, strict=True)
    }


def earned(task: Task, read: Sequence[Clause]) -> float:
    """Return what the exact search earns that reads some clauses."""
    site, orders, _ = read_shift(task.instance)
    state = PickingState(site, orders)
    while command := best_command(reading(state, read), [*state.open.values()]):
        if isinstance(command, Wait):
            state.wait(command.time)
        elif isinstance(command, Trip):
            state.trip(*command)
    return state.objective


def lost(plays: Sequence[Skipped], which: str) -> Estimate:
    """Return the mean of what is lost as a share of the mean optimum."""
    best = np.array([play.all_read for play in plays])
    losses: npt.NDArray[np.float64] = best - np.array([getattr(play, which) for play in plays])
    return mean_estimate((losses / best.mean()).tolist())


def measured(tasks: Sequence[Task]) -> Mapping[str, Sequence[Skipped]]:
    """Return the plays of the Tasks that state each clause."""
    found: dict[str, list[Skipped]] = defaultdict(list)
    for task in tasks:
        for kind, play in skipped(task).items():
            found[kind].append(play)
    return found


def table(plays: Mapping[str, Sequence[Skipped]]) -> str:
    """Return the table, a row for each clause."""
    rows = []
    for kind in CLAUSES:
        words = WORDINGS[kind][_OF_VALIDATION]
        costs = [lost(plays[kind], which) for which in ("but_one", "none_read")]
        shares = [f"{cost.value:.0%} ({cost.low:.0%} to {cost.high:.0%})" for cost in costs]
        rows.append((f"`{kind}`", words, str(len(plays[kind])), *shares))
    return markdown_table(HEADER, rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table, or write it to a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=400, help="test Tasks")
    parser.add_argument("--markdown", type=Path, help="page whose table is written")
    asked = parser.parse_args(arguments)
    tasks = make_world("warehouse", "pick_clauses").first_tasks("test", asked.tasks)
    text = table(measured(tasks))
    print(text)
    if asked.markdown:
        write_block(asked.markdown, BLOCK, text)


if __name__ == "__main__":
    main()
