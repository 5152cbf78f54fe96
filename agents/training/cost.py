"""What a job will use, in tokens, told before anything is spent."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokengym.agents.training.config import TrainSettings
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.registry import baselines, make_world
from tokengym.envs.tokens.codec import Codec
from tokengym.envs.tokens.episode import Episode

_SAMPLE = 16


@dataclass(frozen=True)
class Cost:
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
        """One line for people."""
        return (
            f"about {self.prefill:,} tokens read, at most {self.sampled:,} sampled, "
            f"about {self.trained:,} trained on"
        )


def job_cost(settings: TrainSettings, codec: Codec, tasks: Sequence[Task]) -> Cost:
    """Estimate a job's tokens from a few episodes played by a scripted policy.

    Args:
        settings: the job.
        codec: the conversation's codec.
        tasks: Tasks like those to be played.
    """
    world = make_world(settings.world, settings.level, **settings.options)
    policy = baselines(settings.world)["random"]
    read = turns = length = 0
    sample = tasks[:_SAMPLE]
    for task in sample:
        episode = Episode(world.fork(), task, codec)
        rng = generator("cost", task.fingerprint)
        while not episode.done:
            read += len(episode.observation)
            turns += 1
            length = len(episode.observation)
            episode.act(codec.write(policy(episode.world, episode.turn, rng)))
        length += settings.max_tokens
    groups = settings.steps * settings.groups_per_batch
    rollouts = groups * settings.group_size
    # Demonstrations are written by a script.
    sampled = 0 if settings.sft else rollouts + (groups if settings.estimator == "remax" else 0)
    said = turns * settings.max_tokens
    if settings.filter == "resample":
        # As many again, or what the budget of tokens buys.
        budget = settings.resample_tokens
        sampled += (
            sampled if budget is None else settings.steps * budget * len(sample) // (read + said)
        )
    roles = len(settings.trained)
    played = sampled + 2 * settings.evaluation_tasks * roles
    return Cost(
        prefill=played * read // len(sample),
        sampled=played * said // len(sample),
        trained=rollouts * length * roles,
    )
