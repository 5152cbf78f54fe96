"""Every (world, level) of the catalogue; a new row is picked up without a line here."""

from collections.abc import Callable
from functools import cache, partial

import pytest

from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import make_world, specs

CASES = [(row.id, level) for row in specs().values() for level in row.levels]

Draw = Callable[[str, int], Task]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].rpartition('/')[2]}-{case[1]}")
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    world_id, level = request.param
    return world_id, level


@pytest.fixture
def world(case: tuple[str, str]) -> World:
    return make_world(*case)


@pytest.fixture
def draw(case: tuple[str, str]) -> Draw:
    """Draws the case's Tasks; one that another test has drawn is not drawn again."""
    return partial(drawn, *case)


@cache
def drawn(world_id: str, level: str, split: str, index: int) -> Task:
    return make_world(world_id, level).task(split, index)
