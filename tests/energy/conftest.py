"""Tasks and plants the energy tests share, drawn once a session."""

from collections.abc import Callable
from functools import cache

import pytest

from tokengym.envs.core.task import Task
from tokengym.envs.energy.plants import Plant, plant_from
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import make_world

WorldOf = Callable[..., EnergyWorld]
TaskOf = Callable[[str, int], Task]
PlantOf = Callable[[str, int], Plant]


@pytest.fixture(scope="session")
def world_of() -> WorldOf:
    """A fresh world of a level, with options."""

    def make(level: str, **options: object) -> EnergyWorld:
        world = make_world("energy", level, **options)
        assert isinstance(world, EnergyWorld)
        return world

    return make


@pytest.fixture(scope="session")
def task_of(world_of: WorldOf) -> TaskOf:
    """The Task at an index of a level's training split."""
    return cache(lambda level, index: world_of(level).task("train", index))


@pytest.fixture(scope="session")
def plant_of(task_of: TaskOf) -> PlantOf:
    """The plant of that Task."""
    return cache(lambda level, index: plant_from(task_of(level, index).instance))
