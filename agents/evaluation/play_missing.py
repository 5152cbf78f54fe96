"""Playing rollouts that are not saved yet: bounded, saved as they end, never sampled twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, RolloutRecord
from tokengym.envs.core.task import Task

Progress = Callable[[str, int, int], None]
"""Shows progress: called with a title, the number of saved rollouts, and the number in all."""


class Player(Protocol):
    """Plays one role of a world, with opponents in the others."""

    @property
    def origin(self) -> RolloutOrigin:
        """What its rollouts have in common: who played, and how replies were sampled."""
        ...

    @property
    def role(self) -> str:
        """The role it plays."""
        ...

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout.

        Args:
            task: what to play.
            origin: the player's, with the numbers of the group and the member.
        """
        ...


async def play_missing(
    player: Player,
    tasks: Sequence[Task],
    rollouts: int,
    log: RolloutLog,
    segment: str,
    at_once: asyncio.Semaphore,
    progress: Callable[[int], None] = lambda done: None,
) -> list[RolloutRecord]:
    """Play every Task as often as required, except for the rollouts that are saved already.

    Args:
        player: who plays.
        tasks: what to play.
        rollouts: of each Task.
        log: keeps every rollout as it ends.
        segment: of the log.
        at_once: bounds the rollouts that are under way.
        progress: is given the number of saved rollouts, at first and each time one has ended.

    Returns:
        the rollouts, by Task and number.
    """
    records = saved_rollouts(player.origin, player.role, tasks, rollouts, log, segment)
    progress(len(records))

    async def play(task: Task, origin: RolloutOrigin) -> None:
        async with at_once:
            record = await player.play(task, origin)
        log.append(segment, [record])
        records[origin.group, origin.member] = record
        progress(len(records))

    try:
        async with asyncio.TaskGroup() as playing:
            for group, task in enumerate(tasks):
                for member in range(rollouts):
                    if (group, member) not in records:
                        origin = replace(player.origin, group=group, member=member)
                        playing.create_task(play(task, origin))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the others were cancelled for it
    return [records[place] for place in sorted(records)]


def saved_rollouts(
    origin: RolloutOrigin,
    role: str,
    tasks: Sequence[Task],
    rollouts: int,
    log: RolloutLog,
    segment: str,
) -> dict[tuple[int, int], RolloutRecord]:
    """Return the required rollouts of a player that are saved, by the Task's number and their own.

    Args:
        origin: what the player's rollouts have in common.
        role: the role it plays.
        tasks: what it is to play.
        rollouts: of each Task.
        log: the saved rollouts.
        segment: of the log.
    """
    records = {}
    for record in log.read(segment):
        group, member = place = record.origin.group, record.origin.member
        if (
            record.role == role
            and record.origin == replace(origin, group=group, member=member)
            and group < len(tasks)
            and member < rollouts
            and record.fingerprint == tasks[group].fingerprint
        ):
            records[place] = record
    return records


@dataclass(frozen=True)
class PolicyRollouts:
    """The rollouts of one policy of an evaluation, in the evaluation's folder.

    Attributes:
        policy: the policy's name.
        config: of the evaluation.
        folder: of the evaluation.
        progress: shows what is played, how many rollouts are saved, and how many there will be.
    """

    policy: str
    config: EvaluationConfig
    folder: EvaluationFolder
    progress: Progress

    async def play(self, world: EvaluatedWorld, player: Player, at_once: asyncio.Semaphore) -> None:
        """Play what is missing in a world; the semaphore bounds the rollouts under way."""
        segment = self.folder.segment(world.place, self.policy, self.config)
        title, total = f"{world.name} {self.policy}", len(world.tasks) * self.config.rollouts
        await play_missing(
            player,
            world.tasks,
            self.config.rollouts,
            self.folder.rollouts,
            segment,
            at_once,
            lambda done: self.progress(title, done, total),
        )
        self.folder.rollouts.seal(segment)

    def are_complete(self, world: EvaluatedWorld, origin: RolloutOrigin) -> bool:
        """Return whether all rollouts of a player with this origin are saved in a world."""
        segment, count = (
            self.folder.segment(world.place, self.policy, self.config),
            self.config.rollouts,
        )
        saved = saved_rollouts(
            origin, world.role, world.tasks, count, self.folder.rollouts, segment
        )
        return len(saved) == len(world.tasks) * count
