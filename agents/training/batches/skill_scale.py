"""The scale that training measures skill on: 0 is the best blind policy, 1 the oracle."""

import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tokengym.envs.core.play import Policy, play
from tokengym.envs.core.seeding import generator
from tokengym.envs.core.world import World

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
    def measured(
        cls,
        world: World,
        role: str,
        oracle: Policy,
        blind: Iterable[Policy],
        others: Mapping[str, Policy],
    ) -> "SkillScale":
        """Return the scale as measured on validation Tasks.

        Args:
            world: the world at its level.
            role: the trained role.
            oracle: its oracle.
            blind: its policies that ignore the Task.
            others: who plays the other roles.
        """
        tasks = world.first_tasks("validation", _TASKS) or world.first_tasks("train", _TASKS)

        def earned(policy: Policy) -> float:
            policies = {**others, role: policy}
            return statistics.fmean(
                play(
                    world.fork(), task, policies, generator("curriculum", task.fingerprint)
                ).returns[role]
                for task in tasks
            )

        return cls(max(map(earned, blind)), earned(oracle))

    def skill(self, mean_return: float) -> float:
        """Return where a mean return lies between both ends; 1 if they do not differ."""
        span = self.oracle - self.blind
        return (mean_return - self.blind) / span if span > 0.0 else 1.0
