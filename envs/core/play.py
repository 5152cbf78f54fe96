"""Scripted policies: how they play an episode, and what is kept of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tokengym.envs.core.episode import OpponentPolicy, TextEpisode, role_stream
from tokengym.envs.core.errors import RoleError, TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World

W = TypeVar("W", bound=World)

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

    @classmethod
    def of(cls, episode: TextEpisode) -> "PlayedEpisode":
        """Return what was played in an episode that is over."""
        replies = [each.reply.text for each in episode.exchanges if each.reply is not None]
        return cls(episode.task, tuple(episode.turns), tuple(replies), episode.world.returns)

    @property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of the last Turn."""
        return self.turns[-1].metrics


def play(
    world: World,
    task: Task,
    policies: Mapping[str, Policy] | Policy,
    seed: object = None,
    *,
    opponents: Mapping[str, OpponentPolicy] | None = None,
) -> PlayedEpisode:
    """Play one episode.

    Everybody draws from a stream of their own, see `role_stream`.

    Args:
        world: the world; an episode under way in it is dropped.
        task: one of its Tasks.
        policies: a policy for each role, or one for all.
        seed: tells several plays of a Task apart; a number or several.
        opponents: who plays roles without a policy, by the Task's own streams whatever the seed.

    Raises:
        RoleError: if a role has nobody to play it.
    """
    return drive(TextEpisode(world, task, roles=(), opponents=opponents), policies, seed)


def drive(
    episode: TextEpisode, policies: Mapping[str, Policy] | Policy, seed: object = None
) -> PlayedEpisode:
    """Play an episode to its end; see `play`."""
    if not isinstance(policies, Mapping):
        policies = dict.fromkeys(episode.world.spec.roles, policies)
    key = () if seed is None else seed if isinstance(seed, tuple) else (seed,)
    rngs = {role: role_stream(episode.task, role, *key) for role in policies}
    episode.advance()
    while not episode.done:
        role = episode.role
        if role not in policies:
            raise RoleError(f"no policy for the role {role!r}, only for {sorted(policies)}")
        episode.say(policies[role](episode.world, episode.turn, rngs[role]))
        episode.advance()
    return PlayedEpisode.of(episode)


class ReplayedReply(NamedTuple, Generic[W]):
    """One replayed reply.

    Attributes:
        before: the world before the reply; a copy, free to change.
        reply: the reply.
        turn: the Turn that answered it.
        after: the world after it; valid until the next step.
    """

    before: W
    reply: str
    turn: Turn
    after: W


def replay(world: W, played: PlayedEpisode) -> Iterator[ReplayedReply[W]]:
    """Play an episode again, reply by reply; one in progress in `world` is not affected.

    Raises:
        TaskError: if the returns differ from those it had: it was played with other options.
    """
    twin = world.fork()
    episode = TextEpisode(twin, played.task, roles=())
    for reply in played.replies:
        before = twin.fork()
        yield ReplayedReply(before, reply, episode.say(reply), twin)
    if dict(twin.returns) != dict(played.returns):
        raise TaskError(
            f"an episode of {world.spec.id} must be replayed with the options it was played with: "
            f"it returned {dict(played.returns)}, the replay {dict(twin.returns)}"
        )


def record_replies(
    world: World, task: Task, replies: Sequence[str], *, finish: bool = False
) -> PlayedEpisode:
    """Play replies, whoever's turn it is; an episode in progress in `world` is not affected.

    Args:
        world: the world.
        task: one of its Tasks.
        replies: of all roles, in order.
        finish: whether to play empty replies after them until the episode ends.
    """
    episode = TextEpisode(world.fork(), task, roles=())
    for reply in replies:
        episode.say(reply)
    while finish and not episode.done:
        episode.say("")
    return PlayedEpisode.of(episode)
