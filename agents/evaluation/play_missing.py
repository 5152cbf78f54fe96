"""Playing rollouts that are not saved yet: bounded, saved as they end, never sampled twice.

Models and endpoints are waited for, in this process; an executor plays scripts, in shards.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from tokengym.agents.evaluation.endpoint import EndpointError
from tokengym.agents.evaluation.plan import EvaluationPlan
from tokengym.agents.evaluation.worlds import EvaluatedWorld
from tokengym.agents.execution.executors import IN_PROCESS, Executor
from tokengym.agents.reports.progress import StageProgress, unseen
from tokengym.agents.rollouts import RolloutLog, RolloutOrigin, RolloutRecord, record_play
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World

_FEW_FAILURES = 20
"""Failed rollouts that are always put up with, unless told otherwise."""


class Player(Protocol):
    """Plays one role of a world, with opponents in the others."""

    @property
    def origin(self) -> RolloutOrigin:
        """Properties that its rollouts share: who played, and how replies were sampled."""
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


Wanted = tuple[Task, RolloutOrigin]
"""A Task to play, with the numbers of its group and member."""
_SHARD = 16
"""Rollouts of scripts that a process plays at a time."""


@dataclass(frozen=True)
class ScriptedPlayer:
    """A world's scripted policy.

    Its randomness depends on the seed, the Task and the number of the rollout alone.

    Attributes:
        world: the world; it is forked.
        role: the role it plays.
        policy: who plays it.
        opponents: who plays each other role.
        origin: what its rollouts have in common.
    """

    world: World
    role: str
    policy: Policy
    opponents: Mapping[str, Policy]
    origin: RolloutOrigin

    def play_all(self, wanted: Sequence[Wanted]) -> list[RolloutRecord]:
        """Play rollouts, one after the other."""
        return [self._play(task, origin) for task, origin in wanted]

    def _play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        own, seed = {self.role: self.policy}, (origin.seed, origin.member)
        played = play(self.world.fork(), task, own, seed=seed, opponents=self.opponents)
        return record_play(origin, played, self.role)


@dataclass(frozen=True)
class WantedRollouts:
    """Rollouts that a segment of a log is to hold, the same number of each Task.

    Attributes:
        tasks: the Tasks.
        count: rollouts of each.
        log: keeps every rollout as it ends.
        segment: of the log.
        anew: whether those that the segment holds are played again.
    """

    tasks: Sequence[Task]
    count: int
    log: RolloutLog
    segment: str
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
                and 0 <= group < len(self.tasks)
                and member < self.count
                and record.is_of(self.tasks[group])
            ):
                yield record

    def places(self, player: "Player | ScriptedPlayer") -> set[tuple[int, int]]:
        """Return groups and members of those that are saved; lost ones are played again."""
        if self.anew:
            return set()
        saved = self.saved(player.origin, player.role)
        places = [row.origin.place for row in saved if not row.lost]
        if repeated := len(places) - len(set(places)):
            text = f"{self.segment}: {repeated} repeated rollouts; the last of each counts"
            self.log.notes.append(text)
        return set(places)

    def missing(self, origin: RolloutOrigin, saved: Set[tuple[int, int]]) -> Iterator[Wanted]:
        """Yield what a player is to play: all but those groups and members."""
        for group, task in enumerate(self.tasks):
            for member in range(self.count):
                if (group, member) not in saved:
                    yield task, replace(origin, group=group, member=member)


@dataclass(frozen=True)
class PolicyRollouts:
    """The rollouts of one policy of an evaluation.

    Attributes:
        policy: the policy's name.
        plan: of the evaluation.
        log: keeps them.
        progress: shows what is played, how many rollouts are saved, and how many there will be.
        max_failures: most of them that may fail in a setting; a tenth, but at least 20, if `None`.
        executor: plays them where the policy is a script.
    """

    policy: str
    plan: EvaluationPlan
    log: RolloutLog
    progress: StageProgress = unseen
    max_failures: int | None = None
    executor: Executor = IN_PROCESS

    def wanted(self, world: EvaluatedWorld) -> WantedRollouts:
        """Return the rollouts of a setting."""
        segment = self.plan.segment(world.place, self.policy)
        # A script may know all of a user's data, such as a base rate, and is played for nothing.
        anew = self.policy in world.baselines and not world.world.generates
        tasks = world.tasks[: self.plan.first_tasks.get(self.policy)]
        return WantedRollouts(tasks, self.plan.rollouts, self.log, segment, anew=anew)

    async def play(self, world: EvaluatedWorld, player: Player, at_once: asyncio.Semaphore) -> None:
        """Play what is missing in a world; the semaphore bounds the rollouts under way.

        Raises:
            EndpointError: if more rollouts fail than allowed.
        """
        wanted, failures = self.wanted(world), list[str]()
        saved = wanted.places(player)
        save = self._saving(world, wanted, len(saved))

        async def play(task: Task, origin: RolloutOrigin) -> None:
            record = await player.play(task, origin)
            save([record])
            if record.failure is not None:
                failures.append(record.failure)
                self._bound(failures, world)

        try:
            async with asyncio.TaskGroup() as playing:
                for task, origin in wanted.missing(player.origin, saved):
                    # No more begin than may be under way: 100,000 would need gigabytes.
                    await at_once.acquire()
                    begun = playing.create_task(play(task, origin))
                    begun.add_done_callback(lambda _: at_once.release())
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None  # the others were cancelled for it
        wanted.log.seal(wanted.segment)

    def play_script(self, world: EvaluatedWorld, player: ScriptedPlayer) -> None:
        """Play what is missing of a script in a world, where the executor runs its shards."""
        wanted = self.wanted(world)
        saved = wanted.places(player)
        save = self._saving(world, wanted, len(saved))
        missing = wanted.missing(player.origin, saved)
        shards = iter(lambda: list(islice(missing, _SHARD)), [])
        with closing(self.executor.run(player.play_all, shards)) as results:
            for _, records in results:
                save(records)
        wanted.log.seal(wanted.segment)

    def are_complete(self, world: EvaluatedWorld, origin: RolloutOrigin) -> bool:
        """Put the rollouts of a setting in order; returns whether it has all of such a player."""
        wanted = self.wanted(world)
        wanted.log.seal(wanted.segment)
        places = {row.origin.place for row in wanted.saved(origin, world.role)}
        return len(places) == len(wanted.tasks) * self.plan.rollouts

    def _bound(self, failures: Sequence[str], world: EvaluatedWorld) -> None:
        """Refuse more failed rollouts in a world than are tolerated."""
        few = max(_FEW_FAILURES, len(world.tasks) * self.plan.rollouts // 10)
        most = few if self.max_failures is None else self.max_failures
        if len(failures) > most:
            raise EndpointError(
                f"{self.policy}: {len(failures)} rollouts failed, more than --max-failures {most}; "
                f"the last one: {failures[-1]}"
            )

    def _saving(
        self, world: EvaluatedWorld, wanted: WantedRollouts, done: int
    ) -> Callable[[Sequence[RolloutRecord]], None]:
        """Return what saves rollouts and shows how many there are, `done` of them before."""
        total, title = len(wanted.tasks) * wanted.count, f"{world.place.name} {self.policy}"

        def save(records: Sequence[RolloutRecord]) -> None:
            nonlocal done
            wanted.log.append(wanted.segment, records)
            done += len(records)
            self.progress(title, done, total)

        save(())
        return save
