"""Players of the evaluated role, one rollout at a time; here, scripts."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tokengym.agents.rollouts import RolloutOrigin, RolloutRecord, record_play
from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World


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


@dataclass(frozen=True)
class ScriptedPlayer:
    """A world's scripted policy.

    Its randomness depends on the seed, the Task and the number of the rollout alone.

    Attributes:
        world: the world; it is forked.
        role: the role it plays.
        policies: who plays each role.
        origin: what its rollouts have in common.
    """

    world: World
    role: str
    policies: Mapping[str, Policy]
    origin: RolloutOrigin

    async def play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        """Play one rollout in a thread, since a plan may take seconds."""
        return await asyncio.to_thread(self._play, task, origin)

    def _play(self, task: Task, origin: RolloutOrigin) -> RolloutRecord:
        rng = generator("evaluate", origin.seed, task.fingerprint, origin.member)
        return record_play(origin, play(self.world.fork(), task, self.policies, rng), self.role)
