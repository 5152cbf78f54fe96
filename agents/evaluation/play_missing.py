"""Playing rollouts that are not saved yet: bounded, saved as they end, never sampled twice.

They are played in this process, or by an executor in shards, each of which has a part of the log.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import IN_PROCESS, Executor, InProcess
from tokengym.agents.execution.run_async import run_async
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, RolloutRecord, part_of
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


class PortablePlayer(Player, Protocol):
    """A player that pickles, to play in any process."""

    def connected(self) -> AbstractAsyncContextManager[Any]:
        """Return the context in which it plays."""
        ...


@dataclass
class Failures:
    """Failed rollouts of a policy in a world, which `most` bounds.

    Attributes:
        policy: the policy's name.
        most: most of them; `None` for any number.
        reasons: why they failed.
    """

    policy: str
    most: int | None = None
    reasons: list[str] = field(default_factory=list)

    def add(self, reason: str) -> None:
        """Count a failed rollout.

        Raises:
            EndpointError: if there are more than allowed.
        """
        self.reasons.append(reason)
        if self.most is not None and len(self.reasons) > self.most:
            raise EndpointError(
                f"{self.policy}: {len(self.reasons)} rollouts failed, more than --max-failures "
                f"{self.most}; the last one: {reason}"
            )


@dataclass(frozen=True)
class WantedRollouts:
    """Rollouts that a segment of a log is to hold, the same number of each Task.

    Attributes:
        tasks: the Tasks.
        count: rollouts of each.
        log: keeps every rollout as it ends.
        segment: of the log.
        first: number of the first Task's group.
        known: groups and members that another segment holds.
        anew: whether those that the segment holds are played again.
    """

    tasks: Sequence[Task]
    count: int
    log: RolloutLog
    segment: str
    first: int = 0
    known: Set[tuple[int, int]] = frozenset()
    anew: bool = False

    def saved(self, origin: RolloutOrigin, role: str) -> Iterator[RolloutRecord]:
        """Yield those of a player that the segment holds, as they stand in it.

        Args:
            origin: what the player's rollouts have in common.
            role: the role it plays.
        """
        for record in self.log.read(self.segment):
            group, member = record.origin.place
            if (
                record.role == role
                and record.origin == replace(origin, group=group, member=member)
                and 0 <= group - self.first < len(self.tasks)
                and member < self.count
                and record.is_of(self.tasks[group - self.first])
            ):
                yield record

    def places(self, player: Player) -> set[tuple[int, int]]:
        """Return groups and members of those that are saved; lost ones are played again."""
        saved = self.saved(player.origin, player.role)
        return set() if self.anew else {row.origin.place for row in saved if not row.lost}

    def parts(self, ranges: Sequence[range], known: Set[tuple[int, int]]) -> "list[WantedRollouts]":
        """Return what is missing of some ranges of Tasks, each range as a part of the segment."""
        parts = []
        for part in ranges:
            every = {(group, member) for group in part for member in range(self.count)}
            if not every <= known:
                parts.append(
                    replace(
                        self,
                        tasks=self.tasks[part.start : part.stop],
                        segment=part_of(self.segment, part.start),
                        first=part.start,
                        known=known & every,
                    )
                )
        return parts

    async def play_missing(
        self,
        player: Player,
        at_once: asyncio.Semaphore,
        failures: Failures,
        progress: Callable[[int], None] = lambda done: None,
    ) -> None:
        """Play those that are not saved, or were lost.

        Args:
            player: who plays.
            at_once: bounds the rollouts that are under way.
            failures: takes those that fail.
            progress: is given the number of saved rollouts, at first and each time one has ended.

        Raises:
            EndpointError: if more rollouts fail than allowed.
        """
        saved = self.known | self.places(player)
        done = len(saved)
        progress(done)

        async def play(task: Task, origin: RolloutOrigin) -> None:
            nonlocal done
            record = await player.play(task, origin)
            self.log.append(self.segment, [record])
            done += 1
            progress(done)
            if record.failure is not None:
                failures.add(record.failure)

        try:
            async with asyncio.TaskGroup() as playing:
                for group, task in enumerate(self.tasks, self.first):
                    for member in range(self.count):
                        if (group, member) not in saved:
                            # No more begin than may be under way: 100,000 would need gigabytes.
                            await at_once.acquire()
                            origin = replace(player.origin, group=group, member=member)
                            begun = playing.create_task(play(task, origin))
                            begun.add_done_callback(lambda _: at_once.release())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the others were cancelled for it


@dataclass(frozen=True)
class PolicyRollouts:
    """The rollouts of one policy of an evaluation.

    Attributes:
        policy: the policy's name.
        plan: of the evaluation.
        log: keeps them.
        progress: shows what is played, how many rollouts are saved, and how many there will be.
        max_failures: most of them that may fail in a place; a tenth, but at least 20, if `None`.
        executor: plays them where the policy can be played in any process.
    """

    policy: str
    plan: EvaluationPlan
    log: RolloutLog
    progress: Progress = lambda what, done, total: None
    max_failures: int | None = None
    executor: Executor = IN_PROCESS

    def wanted(self, world: EvaluatedWorld) -> WantedRollouts:
        """Return the rollouts of a place."""
        segment = self.plan.segment(world.place, self.policy)
        # A script may know all of a user's data, such as a base rate, and is played for nothing.
        anew = self.policy in world.baselines and not world.world.generates
        tasks = world.tasks[: self.plan.first_tasks.get(self.policy)]
        return WantedRollouts(tasks, self.plan.rollouts, self.log, segment, anew=anew)

    async def play(self, world: EvaluatedWorld, player: Player, at_once: asyncio.Semaphore) -> None:
        """Play what is missing in a world; the semaphore bounds the rollouts under way."""
        wanted = self.wanted(world)
        await wanted.play_missing(player, at_once, self._failures(world), self._show(world))
        wanted.log.seal(wanted.segment)

    def play_in_shards(self, world: EvaluatedWorld, player: PortablePlayer, at_once: int) -> None:
        """Play what is missing in a world, where the executor runs its shards.

        Args:
            world: the world.
            player: who plays.
            at_once: bounds the rollouts under way in all processes.
        """
        if isinstance(self.executor, InProcess):

            async def play() -> None:
                async with player.connected():
                    await self.play(world, player, asyncio.Semaphore(at_once))

            return run_async(play())
        wanted, failures, show = self.wanted(world), self._failures(world), self._show(world)
        known = wanted.places(player)
        done = len(known)
        show(done)
        shards = wanted.parts(self.executor.ranges(len(world.tasks)), known)
        each = max(1, at_once // self.executor.workers)
        work = partial(_play_shard, player, each, failures)
        with closing(self.executor.run(work, shards)) as results:
            for _, (played, reasons) in results:
                for reason in reasons:
                    failures.add(reason)
                done += played
                show(done)
        wanted.log.seal(wanted.segment)

    def are_complete(self, world: EvaluatedWorld, origin: RolloutOrigin) -> bool:
        """Put the rollouts of a place in order; returns whether it has all of such a player."""
        wanted = self.wanted(world)
        wanted.log.seal(wanted.segment)
        places = {row.origin.place for row in wanted.saved(origin, world.role)}
        return len(places) == len(wanted.tasks) * self.plan.rollouts

    def _failures(self, world: EvaluatedWorld) -> Failures:
        most = self.max_failures
        few = max(_FEW_FAILURES, len(world.tasks) * self.plan.rollouts // 10)
        return Failures(self.policy, few if most is None else most)

    def _show(self, world: EvaluatedWorld) -> Callable[[int], None]:
        total = len(world.tasks) * self.plan.rollouts
        return lambda done: self.progress(f"{world.place.name} {self.policy}", done, total)


def _play_shard(
    player: PortablePlayer, at_once: int, failures: Failures, wanted: WantedRollouts
) -> tuple[int, list[str]]:
    """Play a part; returns how many rollouts that is, and why some failed."""
    own = replace(failures, reasons=[])

    async def play() -> None:
        async with player.connected():
            await wanted.play_missing(player, asyncio.Semaphore(at_once), own)

    run_async(play())
    return len(wanted.tasks) * wanted.count - len(wanted.known), own.reasons
