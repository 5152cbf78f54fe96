"""Replaying episodes: to record them, or to inspect the world before and after each reply."""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.play import PlayedEpisode
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World

W = TypeVar("W", bound=World)


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


def replay(world: W, record: PlayedEpisode) -> Iterator[ReplayedReply[W]]:
    """Replay a Record, reply by reply; an episode in progress in `world` is not affected.

    Raises:
        TaskError: if the returns differ from those recorded: the Record was played with other
            options of the world.
    """
    twin = world.fork()
    twin.start(record.task)
    for reply in record.replies:
        before = twin.fork()
        yield ReplayedReply(before, reply, twin.reply(reply), twin)
    if dict(twin.returns) != dict(record.returns):
        raise TaskError(
            f"a Record of {world.spec.id} must be replayed with the options it was played with: "
            f"it returned {dict(record.returns)}, the replay {dict(twin.returns)}"
        )


def record_replies(
    world: World, task: Task, replies: Sequence[str], *, finish: bool = False
) -> PlayedEpisode:
    """Play replies and return the Record; an episode in progress in `world` is not affected.

    Args:
        world: the world.
        task: one of its Tasks.
        replies: of all roles, in order.
        finish: whether to play empty replies after them until the episode ends.
    """
    twin = world.fork()
    turns, played = [twin.start(task)], list(replies)
    for reply in replies:
        turns.append(twin.reply(reply))
    while finish and not turns[-1].done:
        played.append("")
        turns.append(twin.reply(""))
    return PlayedEpisode(task, tuple(turns), tuple(played), twin.returns)
