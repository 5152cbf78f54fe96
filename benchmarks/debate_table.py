"""The table of the debate: returns of every baseline at every tier, and how often returns tie.

    python -m benchmarks.debate_table                                 every tier, 100 test Tasks
    python -m benchmarks.debate_table L2 --tasks 500 --challenger noisy
    python -m benchmarks.debate_table --target novelty --tasks 200 --markdown docs/papers.md

One row per tier and one column per policy, of the predictor against one challenger: mean return
with 95 % interval, and how often an answer was malformed, if ever. Returns are scored against the
exact posterior (`label=expected`), so that no policy stands above the bound, the most that the
posterior can earn, by luck. Then how often pairs of rollouts of the noisy policy tie when scored on
outcomes, for the whole reward and for correctness alone, and the processor time to draw a Task.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.pages import keyed_table
from tokengym.agents.analysis.markdown import write_block
from tokengym.agents.evaluation.scripted import play_all, play_group, well_formed
from tokengym.envs import baselines, make_world
from tokengym.envs.core.play import Policy
from tokengym.envs.disruption.challengers import CHALLENGERS
from tokengym.envs.disruption.world import CHALLENGER, PREDICTOR, TARGETS
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.ties import tie_statistics

GROUP_SIZE = 16
GROUPS = 100
BLOCK = "debate_table.py"

Cells = Mapping[str, str]
"""A row of the table by column."""


def measure(level: str, target: str, challenger: str, count: int) -> Cells:
    """Return one tier's row."""
    world = make_world("disruption", level, target=target)
    exact = make_world("disruption", level, target=target, label="expected")
    sides: dict[str, dict[str, Policy]] = {
        name: {PREDICTOR: policy, CHALLENGER: CHALLENGERS[challenger]}
        for name, policy in baselines("disruption").items()
    }
    tasks, seconds = [], []
    for index in range(count):
        start = time.process_time()
        tasks.append(world.task("test", index))
        seconds.append(time.process_time() - start)
    rescored = [exact.adopt(task) for task in tasks]
    bounds = [exact.optimum(task)[PREDICTOR].value for task in rescored]
    returns = {}
    for name, roles in sides.items():
        records = play_all(exact, rescored, roles)
        malformed = f"{1 - statistics.fmean(well_formed(records, PREDICTOR)):.0%}"
        mean = str(mean_estimate([record.returns[PREDICTOR] for record in records]))
        returns[name] = mean if malformed == "0%" else f"{mean}, {malformed}"
    groups = [play_group(world, task, sides["noisy"], GROUP_SIZE) for task in tasks[:GROUPS]]
    whole = np.array([[run.returns[PREDICTOR] for run in group] for group in groups])
    right = np.array(
        [[run.turns[-1].terms[PREDICTOR]["correctness"] for run in group] for group in groups]
    )
    ties = [tie_statistics(found_NG)["reward_tie_pair_rate"] for found_NG in (whole, right)]
    return {
        **returns,
        "bound": str(mean_estimate(bounds)),
        "tied pairs": " / ".join(f"{rate:.3f}" for rate in ties),
        "ms": f"{1e3 * statistics.median(seconds):.1f}",
    }


def markdown(levels: Mapping[str, Cells], count: int) -> str:
    """Return the table, with a line that describes its cells."""
    return (
        f"Mean return of the predictor on {count} Tasks against the exact posterior "
        "(`label=expected`) ± half of its 95 %\ninterval, and the share of its answers that were "
        f"malformed, if any; the share of pairs in groups of {GROUP_SIZE} of\n`noisy` that tie on "
        "outcomes, whole reward / correctness alone; median milliseconds to draw a Task:"
        f"\n\n{keyed_table('tier', levels)}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tiers asked for, and print or write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("levels", nargs="*", metavar="tier", help="all tiers if none")
    parser.add_argument("--tasks", type=int, default=100, help="test Tasks per tier")
    parser.add_argument("--target", choices=list(TARGETS), default="disruption")
    parser.add_argument("--challenger", choices=list(CHALLENGERS), default="scripted")
    parser.add_argument("--markdown", type=Path, help="a page with a block for the table")
    chosen = parser.parse_args(arguments)
    done = {}
    for level in chosen.levels or spec("disruption").levels:
        print(f"disruption {level} ...", flush=True)
        done[level] = measure(level, chosen.target, chosen.challenger, chosen.tasks)
    if chosen.markdown is None:
        print(markdown(done, chosen.tasks))
    else:
        write_block(chosen.markdown, BLOCK, markdown(done, chosen.tasks))


if __name__ == "__main__":
    main()
