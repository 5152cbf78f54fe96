"""Group size, ties and flat floors: the two tables of `docs/study.md`, as Markdown.

    python benchmarks/group_size_study.py ties                how often rollouts tie, by group size
    python benchmarks/group_size_study.py training            what groups of 4, 8 and 16 learn
    python benchmarks/group_size_study.py training --seeds 0,1,2,3 --worlds forecast

The first level of every world, with its own graded rewards and with `WorldSpec.flat_floor`. Ties
take a few minutes, training an hour and a half on two cores. Training runs are kept in `--folder`:
called again, the script resumes the interrupted ones and only reads the finished ones.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from tokengym.agents.analysis.markdown import markdown_table
from tokengym.agents.analysis.run_ties import RunTies, run_ties
from tokengym.agents.analysis.sampled_ties import sampled_study
from tokengym.agents.analysis.ties import TieStudy, study_of, tie_study
from tokengym.agents.training.job import Job
from tokengym.agents.training.presets import preset
from tokengym.agents.training.run import Run
from tokengym.envs import World, baselines, make_world

SIZES = (4, 8, 16)
POLICIES = ("noisy", "start")
FLOORS = ("graded", "flat")


class Budget(NamedTuple):
    """What every training run of a world may use, whatever its group size."""

    rollouts_per_step: int
    steps: int
    evaluation_tasks: int


BUDGETS = {
    "forecast": Budget(128, 40, 512),
    "energy": Budget(48, 5, 48),
    "warehouse": Budget(64, 10, 96),
    "disruption": Budget(64, 12, 192),
}

TIES_HEADER = (
    *("world", "policy", "floor", "below it", "tied pairs"),
    *(f"dead, G = {size}" for size in SIZES),
)
TRAINING_HEADER = (
    *("world", "floor", "G", "dead groups", "mean return while training"),
    *("held-out return before", "held-out return after"),
)


def study_ties(world: World, policy: str, tasks: int) -> dict[str, TieStudy]:
    """Play `tasks` groups of the largest size; returns their ties by kind of floor.

    Args:
        world: one with a flat floor to compare with.
        policy: a baseline, or `start` for the untrained starting policy at temperature 1, which in
            the debate meets the challenger it is trained against.
        tasks: test Tasks, one per group.
    """
    name, drawn = world.spec.short_name, world.first_tasks("test", tasks)
    if policy == "start":
        config = replace(preset(name), options={}, temperature=1.0)
        played = sampled_study(Job.resolve(config), drawn, SIZES)
    else:
        played = tie_study(world, drawn, baselines(name), policy, SIZES)
    floor = world.spec.flat_floor
    assert floor is not None
    graded = np.asarray(played.rewards)
    return {
        kind: study_of(
            world,
            played.policy,
            rewards.tolist(),
            SIZES,
            floor=floor.below,
            malformed=played.malformed,
            effort=played.effort,
        )
        for kind, rewards in zip(FLOORS, (graded, floor.flattened(graded)), strict=True)
    }


def ties_rows(worlds: Sequence[str], tasks: int) -> Iterator[Sequence[str]]:
    """Yield the rows of the table of ties."""
    for policy in POLICIES:
        for name in worlds:
            for floor, study in study_ties(make_world(name), policy, tasks).items():
                # The pair rate does not depend on the size: the largest knows it best.
                largest = study.sizes[-1].rates
                pairs = largest["reward_tie_pair_rate"]
                yield (
                    *(name, policy, floor, f"{largest['floor_mass'].value:.0%}"),
                    f"{pairs.value:.3f} ({pairs.low:.3f} to {pairs.high:.3f})",
                    *(f"{1.0 - row.useful.value:.3f}" for row in study.sizes),
                )


def train(folder: Path, world: str, floor: str, size: int, seed: int) -> tuple[RunTies, float]:
    """Train the starting policy, unless that is done; returns the run and its graded return after.

    Raises:
        RuntimeError: if a command fails.
    """
    budget, run = BUDGETS[world], Run(folder / f"{world}-{floor}-G{size}-seed{seed}")
    if run.outcome is None:
        new = (
            *(world, "--run", run.folder, "--seed", seed, "--group-size", size),
            *("--groups", budget.rollouts_per_step // size, "--steps", budget.steps),
            *("--evaluation-tasks", budget.evaluation_tasks),
            *(("--option", "flat_floor=true") if floor == "flat" else ()),
        )
        tokengym("train", *(("--resume", run.folder) if run.exists else new))
        if run.outcome is None:
            raise RuntimeError(f"{run.folder} did not finish: run this command again")
    found = run_ties(run)
    if floor == "graded":
        return found, found.held_out["after"].value
    graded = run.folder / "graded.json"
    if not graded.exists():
        tasks = ("--group-size", 2, "--tasks", budget.evaluation_tasks)
        option = ("--option", "flat_floor=false")
        tokengym("ties", world, "--policy", run.folder, *option, *tasks, "--json", graded)
    return found, json.loads(graded.read_text())["mean_reward"]


def tokengym(*words: object) -> None:
    """Run the command; a training run that collapses ends with an error and still counts."""
    subprocess.run([sys.executable, "-m", "tokengym.agents", *map(str, words)], check=False)


def training_rows(
    folder: Path, worlds: Sequence[str], seeds: Sequence[int]
) -> Iterator[Sequence[str]]:
    """Yield the rows of the table of training runs: the seeds' values side by side."""
    for name in worlds:
        floor_option = make_world(name).spec.flat_floor
        assert floor_option is not None
        for floor in FLOORS if floor_option.option else FLOORS[:1]:
            for size in SIZES:
                runs = [train(folder, name, floor, size, seed) for seed in seeds]
                pace = [found.mean("reward/total") or 0.0 for found, _ in runs]
                dead = fmean(found.mean("reward_uniform_group_rate") or 0.0 for found, _ in runs)
                before = [found.held_out["before"].value for found, _ in runs]
                yield (
                    *(name, floor, str(size), f"{dead:.3f}", listed(pace)),
                    listed(before) if floor == "graded" else "",
                    listed([after for _, after in runs]),
                )


def listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one of the two tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=("ties", "training"))
    parser.add_argument("--worlds", default=",".join(BUDGETS), help="short names")
    parser.add_argument("--tasks", type=int, default=48, help="groups per row of the ties")
    parser.add_argument("--seeds", default="0,1", help="one training run for each")
    parser.add_argument("--folder", type=Path, default=Path("runs/study"), help="of the runs")
    options = parser.parse_args(arguments)
    worlds = options.worlds.split(",")
    if options.table == "ties":
        print(markdown_table(TIES_HEADER, list(ties_rows(worlds, options.tasks))))
    else:
        seeds = [int(seed) for seed in options.seeds.split(",")]
        rows = list(training_rows(options.folder, worlds, seeds))
        print(markdown_table(TRAINING_HEADER, rows))


if __name__ == "__main__":
    main()
