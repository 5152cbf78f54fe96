"""Playing replies again, to record them or to read what the world was like around each."""

from collections.abc import Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.rollout import Record
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World

W = TypeVar("W", bound=World)


class Step(NamedTuple, Generic[W]):
    """One reply played again.

    Attributes:
        before: the world as it was when the reply was given; the reader's own to change.
        reply: the reply.
        turn: how the world answered.
        after: the world after it; good until the next step is asked for.
    """

    before: W
    reply: str
    turn: Turn
    after: W


def replay(world: W, record: Record) -> Iterator[Step[W]]:
    """Play a Record again, reply by reply; an episode under way in `world` is left alone.

    Raises:
        TaskError: if the returns come out otherwise than recorded: the Record was played with
            other options of the world.
    """
    twin = world.fork()
    twin.start(record.task)
    for reply in record.replies:
        before = twin.fork()
        yield Step(before, reply, twin.reply(reply), twin)
    if dict(twin.returns) != dict(record.returns):
        raise TaskError(
            f"a Record of {world.spec.id} is replayed with the options it was played with: it "
            f"returned {dict(record.returns)}, the replay {dict(twin.returns)}"
        )


def record_replies(
    world: World, task: Task, replies: Sequence[str], *, finish: bool = False
) -> Record:
    """Play replies and return the Record; an episode under way in `world` is left alone.

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
    return Record(task, tuple(turns), tuple(played), twin.returns)
