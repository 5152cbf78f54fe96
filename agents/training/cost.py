"""The tokens a job will use, estimated beforehand from scripted episodes or from rollouts."""

from collections.abc import Sequence
from typing import NamedTuple, Self

from tokengym.agents.rollouts import RolloutRecord
from tokengym.agents.training.fill_in import tokens_read
from tokengym.agents.training.job import Job
from tokengym.envs.core.task import Task

_SAMPLE = 16


class Cost(NamedTuple):
    """Tokens of a whole job, upper estimates unless measured on rollouts.

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
            f"about {self.prefill:,} tokens read, {self.sampled:,} sampled, "
            f"{self.trained:,} trained on"
        )

    def dollars(self, prices: Sequence[float]) -> float:
        """Return the price, given dollars per million tokens read, sampled and trained on."""
        return sum(map(float.__mul__, map(float, self), map(float, prices))) / 1e6


class EpisodeTokens(NamedTuple):
    """Tokens of some episodes together.

    Attributes:
        episodes: how many they are.
        read: of all observations.
        sampled: of all replies.
        length: of the conversations at their ends, which are trained on.
    """

    episodes: int
    read: int
    sampled: int
    length: int

    @classmethod
    def of_records(cls, records: Sequence[RolloutRecord]) -> Self:
        """Return the tokens of rollouts; of several roles there is one of each."""
        turns = [turn for record in records for turn in record.own_turns]
        last = [record.own_turns[-1] for record in records if record.own_turns]
        return cls(
            len({record.origin.place for record in records}),
            sum(turn.prompt_tokens or 0 for turn in turns),
            sum(turn.completion_tokens or 0 for turn in turns),
            sum((turn.prompt_tokens or 0) + (turn.completion_tokens or 0) for turn in last),
        )


def job_cost(job: Job, measured: EpisodeTokens | None = None) -> Cost:
    """Estimate a job's tokens from a few episodes of a scripted policy, or of its own.

    Args:
        job: the job.
        measured: episodes of the policy.
    """
    config = job.config
    tasks = job.world.first_tasks("test", min(_SAMPLE, config.evaluation_tasks))
    episodes, read, replies, length = measured or _measure(job, tasks)
    rollouts = config.steps * config.groups_per_batch * config.group_size
    # Demonstrations are written by a script, and preferences are on record.
    algorithm = job.algorithm
    sampled = rollouts if config.rolls_out else 0
    if algorithm.filter == "resample":
        # As many again, or what the budget of tokens buys.
        budget = algorithm.resample_tokens
        sampled += (
            sampled if budget is None else config.steps * budget * episodes // (read + replies)
        )
    # Rollouts of several roles were counted together.
    roles = 1 if measured else len(job.roles)
    evaluations = 1 + bool(job.learning.warm_start)
    held_out = evaluations * config.tasks_before + config.evaluation_tasks
    played = sampled + held_out * roles
    trained = rollouts * length // episodes * roles
    return Cost(
        prefill=played * read // episodes, sampled=played * replies // episodes, trained=trained
    )


def rollouts_cost(job: Job, tasks: Sequence[Task], size: int) -> tuple[int, int]:
    """Return upper estimates of the tokens that `size` rollouts of each Task read and sample."""
    episodes, read, replies, _ = _measure(job, tasks[:_SAMPLE])
    rollouts = len(tasks) * size
    return rollouts * read // episodes, rollouts * replies // episodes


def _measure(job: Job, tasks: Sequence[Task]) -> EpisodeTokens:
    """Return the tokens of one episode of each Task, with replies of the most tokens."""
    read = turns = length = 0
    for task in tasks:
        observed = tokens_read(job.world, task, job.codec, job.baselines["random"])
        read += sum(observed)
        turns += len(observed)
        length += observed[-1] + job.max_tokens
    return EpisodeTokens(len(tasks), read, turns * job.max_tokens, length)
