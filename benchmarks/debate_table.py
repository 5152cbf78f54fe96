"""Tables of the debate: returns of every baseline at every tier, and how often returns tie.

    python benchmarks/debate_table.py                                 every tier, 100 test Tasks
    python benchmarks/debate_table.py L2 --tasks 500 --challenger noisy
    python benchmarks/debate_table.py --target novelty --tasks 200 --markdown docs/papers.md

Two tables, of the predictor against one challenger. The first has one row per tier and one column
per policy: mean return with 95 % interval, and how often an answer was malformed; its last column
is the bound of what the exact posterior can earn. Returns are scored against the exact posterior
(`label=expected`), so that no policy stands above the bound by luck. The second has how often pairs
of rollouts of the noisy policy tie when scored on outcomes, for the whole reward and for
correctness alone; how far Bayes (the oracle) stays below its bound and how many runs of any policy
exceed it; and the processor time to draw a Task.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tokengym.agents.analysis.evaluate import play_all, play_group, well_formed
from tokengym.agents.analysis.markdown import keyed_table, write_block
from tokengym.envs import baselines, make_world
from tokengym.envs.core.play import Policy
from tokengym.envs.disruption.challengers import CHALLENGERS
from tokengym.envs.disruption.world import CHALLENGER, PREDICTOR, TARGETS
from tokengym.envs.registry import spec
from tokengym.rewards.estimates import mean_estimate
from tokengym.rewards.ties import tie_statistics

GROUP_SIZES = (4, 8, 16)
GROUPS = 100
BLOCK = "debate_table.py"

Cells = Mapping[str, str]
"""A row of a table by column."""


def measure(level: str, target: str, challenger: str, count: int) -> dict[str, Cells]:
    """Return one tier's rows: `returns` and `ties`."""
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
    returns, earned_by = {}, {}
    for name, roles in sides.items():
        records = play_all(exact, rescored, roles)
        earned_by[name] = [record.returns[PREDICTOR] for record in records]
        malformed = 1 - statistics.fmean(well_formed(records, PREDICTOR))
        returns[name] = f"{mean_estimate(earned_by[name])}, {malformed:.0%}"
    groups = [play_group(world, task, sides["noisy"], max(GROUP_SIZES)) for task in tasks[:GROUPS]]
    whole = np.array([[run.returns[PREDICTOR] for run in group] for group in groups])
    right = np.array(
        [[run.turns[-1].terms[PREDICTOR]["correctness"] for run in group] for group in groups]
    )
    ties = {
        f"ties of {size}": " / ".join(
            f"{tie_statistics(found_NG[:, :size])['reward_tie_pair_rate']:.3f}"
            for found_NG in (whole, right)
        )
        for size in GROUP_SIZES
    }
    above = sum(
        int((np.array(earned) > np.array(bounds) + 1e-4).sum()) for earned in earned_by.values()
    )
    return {
        "returns": {"Tasks": str(count), **returns, "bound": str(mean_estimate(bounds))},
        "ties": {
            **ties,
            "Bayes below its bound": str(
                mean_estimate((np.array(bounds) - np.array(earned_by["oracle"])).tolist())
            ),
            "runs above the bound": f"{above} of {count * len(earned_by)}",
            "ms to draw": f"{1e3 * statistics.median(seconds):.1f}",
        },
    }


def markdown(levels: Mapping[str, Mapping[str, Cells]]) -> str:
    """Return both tables, each with a line that describes its cells."""
    returns, ties = (
        keyed_table("tier", {level: found[part] for level, found in levels.items()})
        for part in ("returns", "ties")
    )
    return (
        "Mean return of the predictor against the exact posterior (`label=expected`) ± half of its "
        "95 % interval, and the share\nof its answers that were malformed:\n\n"
        f"{returns}\n\n"
        "Share of pairs within a group of `noisy` that tie on outcomes, whole reward / correctness "
        "alone, by group size; how far\nBayes stays below its bound and how many runs exceed it; "
        f"median milliseconds of a processor:\n\n{ties}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tiers asked for, and print or write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("levels", nargs="*", metavar="tier", help="all tiers if none")
    parser.add_argument("--tasks", type=int, default=100, help="test Tasks per tier")
    parser.add_argument("--target", choices=list(TARGETS), default="disruption")
    parser.add_argument("--challenger", choices=list(CHALLENGERS), default="scripted")
    parser.add_argument("--markdown", type=Path, help="a page with a block for these tables")
    chosen = parser.parse_args(arguments)
    done = {}
    for level in chosen.levels or spec("disruption").levels:
        print(f"disruption {level} ...", flush=True)
        done[level] = measure(level, chosen.target, chosen.challenger, chosen.tasks)
    if chosen.markdown is None:
        print(markdown(done))
    else:
        write_block(chosen.markdown, BLOCK, markdown(done))


if __name__ == "__main__":
    main()
