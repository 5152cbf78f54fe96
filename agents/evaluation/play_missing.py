"""Playing rollouts that are not saved yet: bounded, saved as they end, never sampled twice."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tokengym.agents.evaluation.chat_client import Patience
from tokengym.agents.evaluation.config import EvaluationConfig
from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.folder import EvaluationFolder
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, RolloutRecord
from tokengym.envs.core.task import Task

Progress = Callable[[str, int, int], None]
"""Shows progress: called with a title, the number of saved rollouts, and the number in all."""

_FEW_FAILURES = 20
"""Failed rollouts that are always put up with, unless told otherwise."""


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
    max_failures: int | None = None,
) -> None:
    """Play every Task as often as required, except for the rollouts that are saved already.

    One that was lost is played again.

    Args:
        player: who plays.
        tasks: what to play.
        rollouts: of each Task.
        log: keeps every rollout as it ends.
        segment: of the log.
        at_once: bounds the rollouts that are under way.
        progress: is given the number of saved rollouts, at first and each time one has ended.
        max_failures: most failed rollouts; `None` for any number.

    Raises:
        EndpointError: if more rollouts fail.
    """
    saved = {
        (record.origin.group, record.origin.member)
        for record in saved_rollouts(player.origin, player.role, tasks, rollouts, log, segment)
        if not record.lost
    }
    done, failures = len(saved), 0
    progress(done)

    async def play(task: Task, origin: RolloutOrigin) -> None:
        nonlocal done, failures
        record = await player.play(task, origin)
        log.append(segment, [record])
        done += 1
        progress(done)
        failures += record.failure is not None
        if max_failures is not None and failures > max_failures:
            raise EndpointError(
                f"{origin.policy}: {failures} rollouts failed, more than --max-failures "
                f"{max_failures}; the last one: {record.failure}"
            )

    try:
        async with asyncio.TaskGroup() as playing:
            for group, task in enumerate(tasks):
                for member in range(rollouts):
                    if (group, member) not in saved:
                        # No more are begun than may be under way: 100,000 would need gigabytes.
                        await at_once.acquire()
                        origin = replace(player.origin, group=group, member=member)
                        begun = playing.create_task(play(task, origin))
                        begun.add_done_callback(lambda _: at_once.release())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the others were cancelled for it


def saved_rollouts(
    origin: RolloutOrigin,
    role: str,
    tasks: Sequence[Task],
    rollouts: int,
    log: RolloutLog,
    segment: str,
) -> Iterator[RolloutRecord]:
    """Yield the required rollouts of a player that are saved, as they stand in the log.

    Args:
        origin: what the player's rollouts have in common.
        role: the role it plays.
        tasks: what it is to play.
        rollouts: of each Task.
        log: the saved rollouts.
        segment: of the log.
    """
    for record in log.read(segment):
        group, member = record.origin.group, record.origin.member
        if (
            record.role == role
            and record.origin == replace(origin, group=group, member=member)
            and group < len(tasks)
            and member < rollouts
            and record.fingerprint == tasks[group].fingerprint
        ):
            yield record


@dataclass(frozen=True)
class PolicyRollouts:
    """The rollouts of one policy of an evaluation, in the evaluation's folder.

    Attributes:
        policy: the policy's name.
        config: of the evaluation.
        folder: of the evaluation.
        progress: shows what is played, how many rollouts are saved, and how many there will be.
        patience: how many of them may fail.
    """

    policy: str
    config: EvaluationConfig
    folder: EvaluationFolder
    progress: Progress
    patience: Patience

    async def play(self, world: EvaluatedWorld, player: Player, at_once: asyncio.Semaphore) -> None:
        """Play what is missing in a world; the semaphore bounds the rollouts under way."""
        segment = self.folder.segment(world.place, self.policy, self.config)
        title, total = f"{world.name} {self.policy}", len(world.tasks) * self.config.rollouts
        most = self.patience.max_failures
        await play_missing(
            player,
            world.tasks,
            self.config.rollouts,
            self.folder.rollouts,
            segment,
            at_once,
            lambda done: self.progress(title, done, total),
            max(_FEW_FAILURES, total // 10) if most is None else most,
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
        places = {(record.origin.group, record.origin.member) for record in saved}
        return len(places) == len(world.tasks) * count
