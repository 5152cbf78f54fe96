"""The scale that training measures skill on: 0 is the best blind policy, 1 the oracle."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokengym.envs.core.rollout import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, load, scripted_opponent

_TASKS = 64


class SkillScale(NamedTuple):
    """The ends of the scale in one world at one level.

    Attributes:
        blind: mean return of the best policy that ignores the Task: skill 0.
        oracle: mean return of the oracle: skill 1.
    """

    blind: float
    oracle: float

    @classmethod
    def measured(cls, world: World, role: str) -> "SkillScale":
        """Return the scale as measured on validation Tasks.

        Args:
            world: the world at its level.
            role: the trained role; scripts play the others.
        """
        row = world.spec
        known = baselines(row.id)
        blind = load(row.blind)(world) if row.blind else {"null": known["null"]}
        tasks = world.first_tasks("validation", _TASKS) or world.first_tasks("train", _TASKS)
        best = max(_mean_return(world, role, policy, tasks) for policy in blind.values())
        return cls(best, _mean_return(world, role, known["oracle"], tasks))

    def skill(self, mean_return: float) -> float:
        """Return where a mean return lies between both ends; 1 if they do not differ."""
        span = self.oracle - self.blind
        return (mean_return - self.blind) / span if span > 0.0 else 1.0


def _mean_return(world: World, role: str, policy: Policy, tasks: Sequence[Task]) -> float:
    row = world.spec
    known = baselines(row.id)
    policies: Mapping[str, Policy] = {
        other: known[scripted_opponent(row.id, other)] for other in row.roles if other != role
    } | {role: policy}
    return statistics.fmean(
        play(world.fork(), task, policies, generator("curriculum", task.fingerprint)).returns[role]
        for task in tasks
    )
