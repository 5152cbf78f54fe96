"""The tokens a job will use, estimated beforehand."""

from collections.abc import Sequence
from typing import NamedTuple

from tokengym.agents.training.job import Job
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.tokens.episode import Episode

_SAMPLE = 16


class Cost(NamedTuple):
    """Tokens of a whole job, upper estimates.

    Attributes:
        prefill: read before sampling.
        sampled: sampled, if every reply were as long as it may be.
        trained: read by forward and backward passes.
    """

    prefill: int
    sampled: int
    trained: int

    def __str__(self) -> str:
        """One readable line."""
        return (
            f"about {self.prefill:,} tokens read, at most {self.sampled:,} sampled, "
            f"about {self.trained:,} trained on"
        )


def job_cost(job: Job) -> Cost:
    """Estimate a job's tokens from a few episodes of a scripted policy.

    Several worlds are taken to get the same number of Tasks.
    """
    costs = [_world_cost(part, 1 + len(job.others)) for part in (job, *job.others)]
    return Cost(*map(sum, zip(*costs, strict=True)))


def _world_cost(job: Job, worlds: int) -> Cost:
    """Estimate the tokens of one of several worlds."""
    config = job.config
    tasks = job.world.first_tasks("test", min(_SAMPLE, config.evaluation_tasks))
    read, replies, length = _measure(job, tasks)
    groups = config.steps * config.groups_per_batch // worlds
    rollouts = groups * config.group_size
    # Demonstrations are written by a script, and preferences are on record.
    sampled = rollouts + (groups if config.estimator == "remax" else 0)
    sampled = sampled if config.rolls_out else 0
    if config.filter == "resample":
        # As many again, or what the budget of tokens buys.
        budget = config.resample_tokens
        sampled += (
            sampled if budget is None else config.steps * budget * len(tasks) // (read + replies)
        )
    roles = len(job.roles)
    low = min(config.low_tasks, config.evaluation_tasks)
    played = sampled + 2 * (config.evaluation_tasks + low) * roles
    trained = rollouts * length // len(tasks) * roles
    return Cost(
        # A teacher reads what is trained on.
        prefill=played * read // len(tasks) + (trained if job.teacher else 0),
        sampled=played * replies // len(tasks),
        trained=trained,
    )


def rollouts_cost(job: Job, tasks: Sequence[Task], size: int) -> tuple[int, int]:
    """Return upper estimates of the tokens that `size` rollouts of each Task read and sample."""
    read, replies, _ = _measure(job, tasks[:_SAMPLE])
    rollouts, sample = len(tasks) * size, len(tasks[:_SAMPLE])
    return rollouts * read // sample, rollouts * replies // sample


def _measure(job: Job, tasks: Sequence[Task]) -> tuple[int, int, int]:
    """Return tokens read and at most sampled in one episode of each Task, and their lengths."""
    read = turns = length = 0
    for task in tasks:
        observed = 0
        episode = Episode(job.world.fork(), task, job.codec)
        rng = generator("cost", task.fingerprint)
        while not episode.done:
            observed = len(episode.observation)
            read += observed
            turns += 1
            reply = job.baselines["random"](episode.world, episode.turn, rng)
            episode.act(job.codec.write(reply))
        length += observed + job.max_tokens
    return read, turns * job.max_tokens, length
