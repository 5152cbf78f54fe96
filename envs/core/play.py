"""Playing episodes with scripted policies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tokengym.envs.core.errors import RoleError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World

Policy = Callable[[World, Turn, np.random.Generator], str]
"""A scripted policy: from the world, the Turn it must answer and its own randomness to a reply.

All but the oracle read only what the Turns show; the oracle may read the Task's answer.
"""


@dataclass(frozen=True)
class PlayedEpisode:
    """A finished episode.

    Attributes:
        task: the Task.
        turns: every Turn, the opening one first; one more than there are replies.
        replies: the replies of all roles, in order.
        returns: return of each role.
    """

    task: Task
    turns: tuple[Turn, ...]
    replies: tuple[str, ...]
    returns: Mapping[str, float]

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of the last Turn."""
        return self.turns[-1].metrics


def play(
    world: World, task: Task, policies: Mapping[str, Policy] | Policy, rng: np.random.Generator
) -> PlayedEpisode:
    """Play one episode.

    Args:
        world: the world; an episode under way in it is dropped.
        task: one of its Tasks.
        policies: a policy for each role, or one for all.
        rng: randomness of the policies.

    Raises:
        RoleError: if a role has no policy.
    """
    if not isinstance(policies, Mapping):
        policies = dict.fromkeys(world.spec.roles, policies)
    turn = world.start(task)
    turns = [turn]
    replies: list[str] = []
    while not turn.done:
        if turn.role not in policies:
            raise RoleError(f"no policy for the role {turn.role!r}, only for {sorted(policies)}")
        replies.append(policies[turn.role](world, turn, rng))
        turn = world.reply(replies[-1])
        turns.append(turn)
    return PlayedEpisode(task, tuple(turns), tuple(replies), world.returns)
