"""The group-size study of a scripted policy."""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tokengym.agents.analysis.ties import (
    USUAL_READING,
    Effort,
    TieReading,
    TieStudy,
    fallen_of,
    require_sizes,
    study_of,
)
from tokengym.agents.evaluation.scripted import play_group, well_formed
from tokengym.agents.executors import IN_PROCESS, Executor
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.play import Policy
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.tokens.codec import ByteCodec
from tokengym.envs.tokens.episode import Episode


def tie_study(
    world: World,
    tasks: Sequence[Task],
    policies: Mapping[str, Policy],
    name: str,
    sizes: Sequence[int],
    reading: TieReading = USUAL_READING,
    executor: Executor = IN_PROCESS,
) -> TieStudy:
    """Play groups of the largest size with a scripted policy and describe what each size is like.

    Args:
        world: the level; an episode under way in it is dropped.
        tasks: one a group, at least one.
        policies: scripted policies of the world; `null` plays the other roles.
        name: the one that is studied.
        sizes: group sizes, each at least 2.
        reading: how their rewards are read.
        executor: plays the groups.

    Raises:
        OptionError: if there is no Task, no such policy or a size below 2.
    """
    require_sizes(tasks, sizes)
    if name not in policies:
        raise OptionError(f"{world.spec.id} has the baselines {sorted(policies)}, got {name!r}")
    role = world.spec.roles[0]
    speakers = dict.fromkeys(world.spec.roles, policies["null"]) | {role: policies[name]}
    begun = time.perf_counter()
    groups = executor.map(partial(_play_groups, world, speakers, max(sizes), reading.seed), tasks)
    seconds = time.perf_counter() - begun
    formed = [share for group in groups for share in group.formed]
    held, written = np.mean([(group.held, group.written) for group in groups], axis=0).tolist()
    return study_of(
        world,
        name,
        [group.rewards for group in groups],
        sizes,
        reading,
        tasks=[task.fingerprint for task in tasks],
        fallen=fallen_of([group.ends for group in groups]),
        malformed=1.0 - float(np.mean(formed)) if formed else 0.0,
        effort=Effort(ByteCodec().name, held, written, seconds, len(groups) * max(sizes)),
    )


class _Group(NamedTuple):
    """What a study needs of a group: of its first rollout tokens held and written, too."""

    rewards: Sequence[float]
    ends: Sequence[Mapping[str, float]]
    formed: Sequence[float]
    held: int
    written: int


def _play_groups(
    world: World, speakers: Mapping[str, Policy], size: int, seed: int, tasks: Sequence[Task]
) -> list[_Group]:
    """Play a group of each Task."""
    codec, role, groups = ByteCodec(), world.spec.roles[0], []
    for task in tasks:
        records = play_group(world, task, speakers, size, seed)
        episode, written = Episode(world, task, codec, roles=(role,)), 0
        for turn, reply in zip(records[0].turns, records[0].replies, strict=False):
            written += len(codec.write(reply)) if turn.role == role else 0
            episode.say(reply)
        groups.append(
            _Group(
                [record.returns[role] for record in records],
                [record.metrics for record in records],
                well_formed(records, role),
                len(episode.observation_of(role)),
                written,
            )
        )
    return groups
