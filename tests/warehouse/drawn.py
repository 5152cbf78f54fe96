"""Worlds, and Tasks drawn once a run."""

from functools import cache

from tokengym.envs.core.task import Task
from tokengym.envs.registry import make_world
from tokengym.envs.warehouse.world import WarehouseWorld


def world_of(level: str, **options: str) -> WarehouseWorld:
    world = make_world("warehouse", level, **options)
    assert isinstance(world, WarehouseWorld)
    return world


@cache
def task_of(level: str, index: int, split: str = "train") -> Task:
    return world_of(level).task(split, index)
