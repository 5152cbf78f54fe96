"""Skill in other evaluators: 0 is the best policy that ignores the Task, 1 the oracle.

Evaluators average one number per rollout. Over rollouts of the Tasks that were measured together,
the average of `TaskScale.skill` is the skill that `tokengym evaluate` states of them.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tokengym.agents.scale.level_scale import Scale, best_known
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import expected_return
from tokengym.envs.rollouts import Rollout, Rollouts


class TaskScale(NamedTuple):
    """What scripted policies earn on one of several Tasks, as expected returns where known.

    Attributes:
        blind: of the best blind policy, the same on all Tasks.
        oracle: of the oracle.
        reachable: of the best baseline that reads only the Turns; NaN where none is declared.
        distance: mean over the Tasks of `oracle - blind`.
    """

    blind: float
    oracle: float
    reachable: float
    distance: float

    def metrics(self, rollout: Rollout) -> dict[str, float]:
        """Return the `skill` of a rollout and the `reachable` one; neither if it is undefined."""
        values = {"skill": earned_by(rollout), "reachable": self.reachable}
        return {
            name: (value - self.blind) / self.distance
            for name, value in values.items()
            if self.distance > 0.0 and not math.isnan(value)
        }


def earned_by(rollout: Rollout) -> float:
    """Return a rollout's expected return where the world knows it, else its return."""
    return rollout.turn.metrics.get(expected_return(rollout.role), rollout.total)


def measure_scales(rollouts: Rollouts, tasks: Sequence[Task]) -> tuple[str, list[TaskScale]]:
    """Play the ends of skill on Tasks; returns the blind policy's name, and the scale of each."""
    world, role = rollouts.world, rollouts.role
    best = best_known(world)
    names = [best.policy] if best is not None else []
    scale = Scale.measure(world, tasks, role, rollouts.opponents, policies=names)
    reachable = scale.returns[best.policy].used_T if best is not None else [math.nan] * len(tasks)
    ends, distance = scale.used, scale.ends.oracle - scale.ends.blind
    by_task = zip(ends.blind_T, ends.oracle_T, reachable, strict=True)
    return ends.blind_name, [TaskScale(*one, distance) for one in by_task]
