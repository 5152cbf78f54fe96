"""The group-size study of a policy: the evaluator plays groups, whoever the policy is."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tokengym.agents.evaluation.chat_client import EndpointSettings
from tokengym.agents.evaluation.plan import Plan
from tokengym.agents.evaluation.play_missing import PolicyRollouts
from tokengym.agents.evaluation.policies import resolve_policy
from tokengym.agents.evaluation.ties import (
    USUAL_READING,
    Effort,
    TieReading,
    TieStudy,
    fallen_of,
    require_sizes,
    study_of,
)
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutLog, RolloutRecord
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode

if TYPE_CHECKING:
    from tokengym.agents.training.job import Job


def tie_study(
    world: EvaluatedWorld,
    plan: Plan,
    sizes: Sequence[int],
    reading: TieReading = USUAL_READING,
    confirm: Callable[[Sequence["Job"]], None] = lambda jobs: None,
) -> TieStudy:
    """Play groups of the largest size with a policy and describe what each size is like.

    Args:
        world: the place, with its Tasks; its executor plays the groups of scripts and endpoints.
        plan: of this place and one policy; its rollouts are those of the largest size.
        sizes: group sizes, each at least 2.
        reading: how their rewards are read.
        confirm: is called with the jobs that a model plays by before anything is sampled.

    Raises:
        OptionError: if there is no Task, no such policy, or a size below 2.
    """
    require_sizes(world.tasks, sizes)
    (name,) = plan.policies
    policy = resolve_policy(name, plan, [world], EndpointSettings())
    confirm(policy.jobs)
    with TemporaryDirectory() as scratch:
        log = RolloutLog(Path(scratch))
        at: list[float] = []  # the first is when playing begins, a service having started

        def note(what: str, done: int, total: int) -> None:
            at.append(time.perf_counter())

        policy.play([world], PolicyRollouts(name, plan, log, note, executor=world.executor))
        records = list(log.read(plan.segment(world.place, name)))
    groups = [records[at : at + plan.rollouts] for at in range(0, len(records), plan.rollouts)]
    turns = [turn for record in records for turn in record.own_turns]
    tokens = [_tokens(record) for record in records]
    if any(turn.completion_tokens is None for turn in turns):
        firsts = [group[0] for group in groups]
        tokens = [_bytes(world.world, *one) for one in zip(world.tasks, firsts, strict=True)]
    held, written = (sum(column) / len(tokens) for column in zip(*tokens, strict=True))
    return study_of(
        world.world,
        policy.title,
        [[record.total for record in group] for group in groups],
        sizes,
        reading,
        tasks=[task.fingerprint for task in world.tasks],
        fallen=fallen_of([[record.metrics for record in group] for group in groups]),
        malformed=sum(turn.malformed for turn in turns) / max(len(turns), 1),
        effort=Effort(policy.codec, held, written, at[-1] - at[0], len(records)),
        role=world.role,
    )


def _tokens(record: RolloutRecord) -> tuple[int, int]:
    """Return the tokens that a rollout's role held at the end, and those that it wrote."""
    written = [turn.completion_tokens or 0 for turn in record.own_turns]
    return (record.own_turns[-1].prompt_tokens or 0) + written[-1], sum(written)


def _bytes(world: World, task: Task, record: RolloutRecord) -> tuple[int, int]:
    """Return the same in bytes."""
    codec = ByteCodec()
    episode = Episode(world, task, codec, roles=(record.role,))
    for turn in record.turns:
        episode.say(turn.said or "")
    written = sum(len(codec.write(turn.said or "")) for turn in record.own_turns)
    return len(episode.observation_of(record.role)), written
