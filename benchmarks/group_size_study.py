"""The study: what groups of 4, 8 and 16 teach in every world, with graded rewards and a flat floor.

    python benchmarks/group_size_study.py                what is missing of it, then the page
    python benchmarks/group_size_study.py --estimate     how long that takes, and nothing else
    python benchmarks/group_size_study.py --pilot        a small one, to see that it works

Ties: every world's first level, 48 test Tasks of 16 rollouts, by the scripted noisy policy and by
the starting policy at temperature 1; each set of rollouts is told with the graded rewards and with
a flat floor (`WorldSpec.flat_floor`). Learning: the same rollouts and steps,
so about the same tokens, for every group size, on the local service, two seeds each.

Each cell of the study is a process of its own with one thread. One that is done is not done again
unless the starting policy has changed, and a training run that was stopped goes on. What was found
is written to `docs/study.json`, and `group_size_page.py` makes the page of it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from tokengym.agents.analysis.ties import TieStudy, held_out, study_of, tie_study
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs import baselines, make_world

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "study.json"

SIZES = (4, 8, 16)
WORLDS = ("forecast", "energy", "warehouse", "disruption")
POLICIES = ("noisy", "start")
LESSONS = (*((world, "graded") for world in WORLDS), ("energy", "flat"))

Result = dict[str, Any]
"""What came of a cell: plain JSON values."""


@dataclass(frozen=True)
class Plan:
    """How large the study is.

    Attributes:
        tasks: groups of a tie cell.
        rollouts: rollouts of a training step by world, whatever the group size.
        steps: training steps by world.
        evaluation: held-out Tasks of a training run by world.
        seeds: seeds of a lesson, one run each.
    """

    tasks: int
    rollouts: Mapping[str, int]
    steps: Mapping[str, int]
    evaluation: Mapping[str, int]
    seeds: Sequence[int]


FULL = Plan(
    tasks=48,
    rollouts={"forecast": 128, "energy": 48, "warehouse": 64, "disruption": 64},
    steps={"forecast": 40, "energy": 5, "warehouse": 10, "disruption": 12},
    evaluation={"forecast": 512, "energy": 48, "warehouse": 96, "disruption": 192},
    seeds=(0, 1),
)
PILOT = Plan(
    tasks=4,
    rollouts=dict.fromkeys(WORLDS, 32),
    steps=dict.fromkeys(WORLDS, 2),
    evaluation={"forecast": 32, "energy": 8, "warehouse": 8, "disruption": 16},
    seeds=(0,),
)

STARTING_SECONDS = 20.0
"""From the start of a cell's process until its service answers."""
SECONDS = {
    "noisy": 10.0,
    "start": 25.0,
    "forecast": 75.0,
    "energy": 130.0,
    "warehouse": 75.0,
    "disruption": 75.0,
}
"""Beyond that, for a cell of the full study, two side by side on two quiet cores."""


@dataclass(frozen=True)
class Cell:
    """One measurement.

    Attributes:
        world: short name.
        what: who plays (`POLICIES`), or what floor is learned on.
        size: group size of a lesson; 0 for ties, which are told for all sizes at once.
        seed: seed of a lesson.
    """

    world: str
    what: str
    size: int = 0
    seed: int = 0

    @property
    def name(self) -> str:
        """Its file's name."""
        lesson = f"-G{self.size}-seed{self.seed}" if self.size else ""
        return f"{self.world}-{self.what}{lesson}"

    @property
    def samples(self) -> bool:
        """Whether the starting policy plays."""
        return self.what != "noisy"

    def usual_seconds(self, plan: Plan) -> float:
        """Return how long such a cell takes on a quiet machine."""
        if not self.samples:
            return SECONDS[self.what] * plan.tasks / FULL.tasks
        if not self.size:
            return STARTING_SECONDS + SECONDS[self.what] * plan.tasks / FULL.tasks
        rollouts = plan.steps[self.world] * plan.rollouts[self.world]
        share = rollouts / (FULL.steps[self.world] * FULL.rollouts[self.world])
        return STARTING_SECONDS + SECONDS[self.world] * share


def cells(plan: Plan) -> list[Cell]:
    """Return all cells of a study, cheap ones first."""
    ties = [Cell(world, policy) for policy in POLICIES for world in WORLDS]
    lessons = [
        Cell(world, floor, size, seed)
        for seed in plan.seeds  # every lesson has a first one before any has a second
        for world, floor in LESSONS
        for size in SIZES
    ]
    return [*ties, *lessons]


def measure_ties(cell: Cell, plan: Plan) -> Result:
    """Play groups and tell their ties with the graded rewards and with the flat floor."""
    world = make_world(cell.world)
    tasks = held_out(world, plan.tasks)
    if cell.what == "noisy":
        study = tie_study(world, tasks, baselines(cell.world), "noisy", SIZES)
    else:
        from tokengym.agents.analysis.sampled_ties import sampled_study
        from tokengym.agents.training.config import preset

        settings = replace(preset(cell.world), options={}, temperature=1.0)
        study = sampled_study(settings, tasks, SIZES)
    floor = world.spec.flat_floor
    assert floor is not None
    graded = np.asarray(study.rewards)
    told = {
        name: study_of(
            world,
            study.policy,
            rewards.tolist(),
            SIZES,
            floor=floor.below,
            malformed=study.malformed,
            effort=study.effort,
        )
        for name, rewards in (("graded", graded), ("flat", floor.flattened(graded)))
    }
    return {
        "groups": study.groups,
        "mean_reward": study.mean_reward,
        "malformed": study.malformed,
        "effort": asdict(study.effort),
        "rollouts_per_second": study.rollouts_per_second,
        "tokens_per_second": study.tokens_per_second,
        "floors": {name: _told(found) for name, found in told.items()},
    }


def _told(study: TieStudy) -> Result:
    """What the page says of a study: rates by size without their intervals but for the main two."""
    size, reason = study.recommended
    rows = {
        str(row.size): {
            "useful": list(row.useful),
            "pairs": list(row.rates["reward_tie_pair_rate"]),
            "mass": row.rates["floor_mass"].value,
            "interior": row.rates["interior_tie_pair_rate"].value,
        }
        for row in study.sizes
    }
    return {"sizes": rows, "recommended": size, "reason": reason, "origin": str(study.origin)}


def measure_lesson(cell: Cell, plan: Plan, folder: Path) -> Result:
    """Train from the starting policy and tell how it went, held-out returns on the graded scale."""
    from tokengym.agents.analysis.run_ties import run_ties
    from tokengym.agents.training.config import preset
    from tokengym.agents.training.job import run_job
    from tokengym.agents.training.progress import Progress

    settings = preset(
        cell.world,
        options={"flat_floor": True} if cell.what == "flat" else None,
        group_size=cell.size,
        groups_per_batch=plan.rollouts[cell.world] // cell.size,
        steps=plan.steps[cell.world],
        evaluation_tasks=plan.evaluation[cell.world],
        seed=cell.seed,
    )
    outcome = run_job(settings, folder, Progress())
    found = run_ties(folder)
    after = outcome.after
    if cell.what == "flat":
        after = _evaluated(replace(settings, options={}), folder)
    return {
        "settings": asdict(settings),
        "before": list(outcome.before.returns) if cell.what == "graded" else None,
        "after": list(after.returns),
        "violations": after.figures.get("safety_floor_mass"),
        "oracle": outcome.references["oracle"].mean,
        "series": {name: list(values) for name, values in found.series.items()},
        "tokens": found.tokens,
        "collapse": found.collapse,
    }


def _evaluated(settings: Any, folder: Path) -> Any:
    """Evaluate a run's newest weights by other settings than it was trained by."""
    import asyncio

    import tinker

    from tokengym.agents.analysis.evaluation import evaluate_policy, held_out_tasks
    from tokengym.agents.analysis.sampled_ties import newest_weights
    from tokengym.agents.training.connection import Connection

    async def evaluation(connection: Connection) -> Any:
        client = tinker.ServiceClient(base_url=connection.base_url)
        sampler = await client.create_sampling_client(model_path=newest_weights(folder))
        found = await evaluate_policy(settings, connection.model, sampler, held_out_tasks(settings))
        await client.close("success")
        return found

    with Connection.open(settings, folder) as connection:
        return asyncio.run(connection.guard(evaluation(connection)))


def starting_policy() -> str:
    """Return a digest of the starting policy's weights."""
    return sha256((MODEL_DIR / "model.safetensors").read_bytes()).hexdigest()[:12]


def measure(cell: Cell, plan: Plan, folder: Path) -> None:
    """Measure one cell and write its file, as a whole or not at all."""
    begun, model = time.perf_counter(), starting_policy()
    # A run cannot go on from weights that were trained upon others.
    run = folder / "runs" / f"{cell.name}-{model}"
    found = measure_lesson(cell, plan, run) if cell.size else measure_ties(cell, plan)
    found["seconds"] = time.perf_counter() - begun
    found["starting_policy"] = model if cell.samples else None
    new = folder / f"{cell.name}.new"
    new.write_text(json.dumps(found) + "\n")
    new.replace(folder / f"{cell.name}.json")


def missing(plan: Plan, folder: Path) -> list[Cell]:
    """Return the cells that are not done, or were by another starting policy."""
    model = starting_policy()

    def done(cell: Cell) -> bool:
        path = folder / f"{cell.name}.json"
        if not path.is_file():
            return False
        return not cell.samples or json.loads(path.read_text()).get("starting_policy") == model

    return [cell for cell in cells(plan) if not done(cell)]


def minutes(plan: Plan, todo: Sequence[Cell], done: Mapping[Cell, float], jobs: int) -> float:
    """Estimate how long cells take, by what those that are done took."""
    usual = sum(cell.usual_seconds(plan) for cell in done)
    pace = sum(done.values()) / usual if usual else 1.0
    return pace * sum(cell.usual_seconds(plan) for cell in todo) / jobs / 60.0


def run_all(
    plan: Plan, folder: Path, cells: Sequence[Cell], jobs: int, flags: Sequence[str]
) -> bool:
    """Measure cells, `jobs` at a time; returns whether all of the study is there now."""
    folder.mkdir(parents=True, exist_ok=True)
    todo, done = list(cells), dict[Cell, float]()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running: dict[Cell, tuple[subprocess.Popen[bytes], float]] = {}
    try:
        while todo or running:
            while todo and len(running) < jobs:
                cell = todo.pop(0)
                words = [sys.executable, __file__, *flags, "--cell", cell.name]
                with (folder / f"{cell.name}.log").open("wb") as log:
                    child = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
                running[cell] = (child, time.perf_counter())
            time.sleep(0.2)
            for cell, (child, begun) in list(running.items()):
                if child.poll() is None:
                    continue
                del running[cell]
                if child.returncode:
                    print(f"{cell.name} failed: see {folder / cell.name}.log", flush=True)
                    continue
                done[cell] = time.perf_counter() - begun
                left = minutes(plan, [*todo, *running], done, jobs)
                print(f"{cell.name}: {done[cell]:.0f} s; {left:.0f} minutes left", flush=True)
    finally:
        for child, _ in running.values():
            child.terminate()
    return not missing(plan, folder)


def collected(plan: Plan, folder: Path) -> Result:
    """Return a study as one JSON value."""
    found = {cell.name: folder / f"{cell.name}.json" for cell in cells(plan)}
    return {
        "plan": {**asdict(plan), "sizes": SIZES, "lessons": LESSONS},
        "cells": {name: json.loads(path.read_text()) for name, path in found.items()},
    }


def main() -> int:
    """Measure what is missing and have the page made; 1 if a cell failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pilot", action="store_true", help="a small study")
    parser.add_argument("--estimate", action="store_true", help="say what is missing, and stop")
    parser.add_argument("--jobs", type=int, default=2, help="cells side by side")
    parser.add_argument("--folder", type=Path, help="runs/study, or runs/pilot, if none")
    parser.add_argument("--data", type=Path, default=DATA, help="where the figures go")
    parser.add_argument("--cell", help="measure this one alone, in this process")
    arguments = parser.parse_args()
    plan = PILOT if arguments.pilot else FULL
    folder: Path = arguments.folder or ROOT / "runs" / ("pilot" if arguments.pilot else "study")
    if arguments.cell is not None:
        folder.mkdir(parents=True, exist_ok=True)
        measure(next(cell for cell in cells(plan) if cell.name == arguments.cell), plan, folder)
        return 0
    todo = missing(plan, folder)
    print(f"{len(todo)} cells to do", end=", ")
    print(
        f"about {minutes(plan, todo, {}, arguments.jobs):.0f} minutes of a quiet machine",
        flush=True,
    )
    if arguments.estimate:
        return 0
    flags = ["--folder", str(folder), *(["--pilot"] if arguments.pilot else [])]
    # Cells end with the study, however it is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if not run_all(plan, folder, todo, arguments.jobs, flags):
        return 1
    arguments.data.write_text(json.dumps(collected(plan, folder), indent=1) + "\n")
    page = [sys.executable, str(Path(__file__).with_name("group_size_page.py"))]
    return subprocess.run([*page, "--data", str(arguments.data)]).returncode


if __name__ == "__main__":
    sys.exit(main())
