"""The group-size study of a model: groups sampled through a Tinker client, in its own tokens."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tinker_cookbook.rl.rollouts import do_group_rollout
from tinker_cookbook.rl.types import TrajectoryGroup

from tokengym.agents.analysis.evaluation import group_builder
from tokengym.agents.analysis.ties import Effort, TieStudy, require_sizes, study_of
from tokengym.agents.training.config import TrainSettings
from tokengym.agents.training.connection import Connection
from tokengym.agents.training.cost import job_cost
from tokengym.agents.training.opponents import players, saved_weights
from tokengym.agents.training.sampling import PromptSampler
from tokengym.agents.training.session import session
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world
from tokengym.envs.tokens.codec import Codec
from tokengym.rewards.control import FLOOR

GROUPS_AT_ONCE = 32


def sampled_study(
    settings: TrainSettings,
    tasks: Sequence[Task],
    sizes: Sequence[int],
    *,
    run: Path | None = None,
    weights: str | None = None,
    threshold: float | None = None,
    seed: int = 0,
) -> TieStudy:
    """Sample groups of the largest size and tell what each size is like.

    Samples are drawn by the service and differ from call to call; the intervals say how far that
    moves a rate.

    Args:
        settings: world, level, options, role, model, renderer, temperature, longest reply and who
            speaks for the other roles; what is about training is not looked at.
        tasks: Tasks of that world, one a group, at least one.
        sizes: group sizes, each at least 2.
        run: the folder of a run of `settings`, whose local service may hold `weights`.
        weights: `tinker://` path of what to sample from; the model itself if `None`.
        threshold: see `tie_study`.
        seed: seed of the bootstrap.

    Raises:
        OptionError: if there is no Task or a size is below 2, or the model cannot be served.
    """
    require_sizes(tasks, sizes)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) if run is None else run
        with Connection.open(settings, folder) as connection:
            groups, seconds = asyncio.run(
                connection.guard(_sampled(settings, connection, tasks, max(sizes), weights))
            )
    world = make_world(settings.world, settings.level, **settings.options)
    rollouts = [rollout for group in groups for rollout in group.trajectories_G]
    steps = [step for rollout in rollouts for step in rollout.transitions]
    ends = [rollout.transitions[-1] for rollout in rollouts]
    written = sum(len(step.ac.tokens) for step in steps)
    held = sum(end.ob.length + len(end.ac.tokens) for end in ends)
    return study_of(
        world,
        _name(settings, run, weights),
        [group.get_total_rewards() for group in groups],
        sizes,
        floor=FLOOR if any("safety_floor_mass" in end.metrics for end in ends) else None,
        malformed=statistics.fmean(float(step.metrics["malformed"]) for step in steps),
        effort=Effort(settings.renderer, held / len(ends), written / len(ends), seconds),
        role=settings.trained[0],
        threshold=threshold,
        seed=seed,
    )


def newest_weights(run: Path) -> str:
    """Return the `tinker://` path of the newest weights of a run that can be sampled from.

    Raises:
        OptionError: if the run saved none.
    """
    newest = saved_weights(run).sampler
    if newest is None:
        raise OptionError(f"{run} has saved no weights to sample from yet")
    return newest


def sampling_cost(
    settings: TrainSettings, codec: Codec, tasks: Sequence[Task], size: int
) -> tuple[int, int]:
    """Return upper estimates of the tokens a study reads and samples.

    Args:
        settings: see `sampled_study`.
        codec: the conversation's codec.
        tasks: one a group.
        size: rollouts of a group.
    """
    one = replace(
        settings,
        steps=1,
        groups_per_batch=1,
        group_size=2,
        evaluation_tasks=1,
        estimator="group_centred",
        filter="keep",
        self_play=False,
        separate=False,
    )
    cost = job_cost(one, codec, tasks)
    played = one.group_size + 2 * one.evaluation_tasks
    rollouts = len(tasks) * size
    return cost.prefill * rollouts // played, cost.sampled * rollouts // played


async def _sampled(
    settings: TrainSettings,
    connection: Connection,
    tasks: Sequence[Task],
    size: int,
    weights: str | None,
) -> tuple[list[TrajectoryGroup], float]:
    """Sample the groups; returns them and the seconds that took."""
    async with session(connection.base_url) as client:
        sampler = (
            await client.create_sampling_client(model_path=weights)
            if weights
            else await client.create_sampling_client(base_model=connection.model)
        )
        policy = PromptSampler(sampler, settings.max_tokens, settings.temperature)
        others = settings.opponents_of(settings.trained[0])
        opponents = await players(settings, others, connection, client)
        gate = asyncio.Semaphore(GROUPS_AT_ONCE)

        async def play(task: Task) -> TrajectoryGroup:
            async with gate:
                builder = group_builder(
                    settings, connection.model, task, group_size=size, opponents=opponents
                )
                return await do_group_rollout(builder, policy)

        begun = time.perf_counter()
        groups = await asyncio.gather(*(play(task) for task in tasks))
        seconds = time.perf_counter() - begun
    return list(groups), seconds


def _name(settings: TrainSettings, run: Path | None, weights: str | None) -> str:
    model = Path(settings.model).name if run is None else run.name
    checkpoint = f" ({weights.rpartition('/')[2]})" if weights else ""
    return f"{model}{checkpoint} at temperature {settings.temperature:g}"
