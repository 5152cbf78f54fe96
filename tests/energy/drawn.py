"""Worlds, and Tasks and plants drawn once a run."""

from functools import cache
from typing import Any

from tokengym.envs.core.task import Task
from tokengym.envs.energy.plants import plant_from
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import make_world


def world_of(level: str, **options: object) -> EnergyWorld:
    """A fresh world of a level, with options."""
    return EnergyWorld.cast(make_world("energy", level, **options))


@cache
def task_of(level: str, index: int) -> Task:
    """The Task at an index of a level's training split."""
    return world_of(level).task("train", index)


@cache
def plant_of(level: str, index: int) -> Any:
    """The plant of that Task: a `Microgrid`, or an `OffGridSite` where the level commits units."""
    return plant_from(task_of(level, index).instance)
