"""The group-size study of a model: groups sampled through a Tinker client, in its own tokens."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import TrajectoryGroup

from tokengym.agents.analysis.ties import (
    USUAL_READING,
    Effort,
    TieReading,
    TieStudy,
    fallen_of,
    require_sizes,
    study_of,
)
from tokengym.agents.tinker.groups import TaskGroupBuilder
from tokengym.agents.training.batches.sampling import SeededRollouts
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.folder.run import RunFolder
from tokengym.agents.training.job import Job
from tokengym.agents.training.session import TrainingSession
from tokengym.envs.core.task import Task


def sampled_study(
    job: Job,
    tasks: Sequence[Task],
    sizes: Sequence[int],
    reading: TieReading = USUAL_READING,
    *,
    run: RunFolder | None = None,
    weights: str | None = None,
) -> TieStudy:
    """Sample groups of the largest size and describe what each size is like.

    Samples are drawn by the service and differ from call to call; the intervals say how far that
    moves a rate.

    Args:
        job: world, role, model, temperature, longest reply and opponents; what is about training
            is not looked at.
        tasks: Tasks of its world, one a group, at least one.
        sizes: group sizes, each at least 2.
        reading: how their rewards are read.
        run: a run of the job, whose local service may hold `weights`.
        weights: `tinker://` path of what to sample from; the model itself if `None`.

    Raises:
        OptionError: if there is no Task or a size is below 2.
    """
    require_sizes(tasks, sizes)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "service" if run is None else run.service_folder
        with Connection.open(job.target, folder) as connection:
            sampling = _sample(job, connection, tasks, max(sizes), weights)
            groups, seconds = asyncio.run(connection.guard(sampling))
    rollouts = [rollout for group in groups for rollout in group.trajectories_G]
    steps = [step for rollout in rollouts for step in rollout.transitions]
    ends = [rollout.transitions[-1] for rollout in rollouts]
    written = sum(len(step.ac.tokens) for step in steps) / len(ends)
    held = sum(end.ob.length + len(end.ac.tokens) for end in ends) / len(ends)
    last = [[run.transitions[-1].metrics for run in group.trajectories_G] for group in groups]
    return study_of(
        job.world,
        _name(job, run, weights),
        [group.get_total_rewards() for group in groups],
        sizes,
        reading,
        fallen=fallen_of(last),
        malformed=statistics.fmean(float(step.metrics["malformed"]) for step in steps),
        tasks=[task.fingerprint for task in tasks],
        effort=Effort(job.config.renderer, held, written, seconds, len(ends)),
        role=job.roles[0],
    )


async def _sample(
    job: Job, connection: Connection, tasks: Sequence[Task], size: int, weights: str | None
) -> tuple[list[TrajectoryGroup], float]:
    """Sample the groups; returns them and the seconds that took."""
    role = job.roles[0]
    async with TrainingSession.open(job, connection) as session:
        policy = await session.completer(weights)
        strategy = SeededRollouts(("ties", job.config.seed))
        gate = asyncio.Semaphore(max(1, session.at_once // size))

        async def play(task: Task) -> TrajectoryGroup:
            async with gate:
                builder = TaskGroupBuilder(
                    task,
                    job.codec.name,
                    size,
                    options=dict(job.config.options),
                    role=role,
                    opponents=session.opponents[role],
                    max_turn_tokens=job.max_tokens,
                )
                return await do_group_rollout(builder, policy, strategy)

        begun = time.perf_counter()
        groups = await asyncio.gather(*(play(task) for task in tasks))
        seconds = time.perf_counter() - begun
    return list(groups), seconds


def _name(job: Job, run: RunFolder | None, weights: str | None) -> str:
    model = Path(job.config.model).name if run is None else run.name
    checkpoint = f" ({weights.rpartition('/')[2]})" if weights else ""
    return f"{model}{checkpoint} at temperature {job.config.temperature:g}"
