"""Saved rollouts beside the Tasks as they are now: corrected data must not mix with earlier data.

A record names its Task's question and answer by fingerprints.
"""

import json
from collections.abc import Iterable
from functools import cache

from tokengym.agents.rollouts.record import RolloutRecord
from tokengym.envs.core.errors import OptionError
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world

_DRAWN_TASKS = 8


def require_same_answers(
    records: Iterable[RolloutRecord], where: str, again: str, world: World | None = None
) -> None:
    """Refuse rollouts that were paid by other answers than their Tasks have now.

    Where Tasks are drawn, a few are compared: options and data change all of them alike, and
    drawing one may be slow.

    Args:
        records: the rollouts.
        where: what holds them.
        again: how to play the Tasks again.
        world: the world that all Tasks are of; if `None`, those that the records name.

    Raises:
        OptionError: with the number of Tasks whose question, answer or reward is another one.
    """
    made = cache(lambda name, level, options: make_world(name, level, **json.loads(options)))
    tasks: dict[tuple[object, ...], bool] = {}
    for record in records:
        now = world or made(record.world, record.level, json.dumps({**record.origin.options}))
        size = now.size(record.split)
        if size is None and len(tasks) >= _DRAWN_TASKS:
            continue
        there = size is None or record.index < size
        same = there and record.is_of(now.task(record.split, record.index))
        task = record.world, record.level, record.split, record.index
        tasks[task] = same and tasks.get(task, True)
    if differ := [*tasks.values()].count(False):
        raise OptionError(
            f"{differ} of {len(tasks)} answers in {where} differ from those of the data and "
            f"options now: {again}"
        )
