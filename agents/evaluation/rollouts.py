"""Playing rollouts that are not saved yet: bounded, saved as they end, never sampled twice."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from tokengym.agents.evaluation.players import Player
from tokengym.agents.rollouts import Origin, RolloutLog, RolloutRecord
from tokengym.envs.core.task import Task


async def play_all_of(
    player: Player,
    tasks: Sequence[Task],
    rollouts: int,
    log: RolloutLog,
    segment: str,
    at_once: asyncio.Semaphore,
    progress: Callable[[int], None] = lambda done: None,
) -> list[RolloutRecord]:
    """Play every Task as often as required, less the rollouts that the log holds of this player.

    Args:
        player: who plays.
        tasks: what to play.
        rollouts: of each Task.
        log: keeps every rollout as it ends.
        segment: of the log.
        at_once: bounds the rollouts that are under way.
        progress: is given the number of rollouts that are on record now.

    Returns:
        the rollouts, by Task and number.
    """
    found = {
        (record.origin.group, record.origin.member): record
        for record in log.read(segment)
        if _is_of(record, player, tasks, rollouts)
    }
    progress(len(found))

    async def play(task: Task, origin: Origin) -> None:
        async with at_once:
            record = await player.play(task, origin)
        log.append(segment, [record])
        found[origin.group, origin.member] = record
        progress(len(found))

    try:
        async with asyncio.TaskGroup() as playing:
            for group, task in enumerate(tasks):
                for member in range(rollouts):
                    if (group, member) not in found:
                        origin = replace(player.origin, group=group, member=member)
                        playing.create_task(play(task, origin))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None  # the others were cancelled for it
    return [found[place] for place in sorted(found)]


def _is_of(record: RolloutRecord, player: Player, tasks: Sequence[Task], rollouts: int) -> bool:
    """Return whether a record is one of those required."""
    group, member = record.origin.group, record.origin.member
    return (
        record.role == player.role
        and record.origin == replace(player.origin, group=group, member=member)
        and group < len(tasks)
        and member < rollouts
        and record.fingerprint == tasks[group].fingerprint
    )
