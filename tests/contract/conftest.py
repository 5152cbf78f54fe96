"""Every (world, level) of the catalogue; a new row is picked up without a line here."""

import pytest

from tokengym.envs.catalogue import make_world, specs
from tokengym.envs.core.world import World

CASES = [(row.id, level) for row in specs().values() for level in row.levels]


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0].rpartition('/')[2]}-{case[1]}")
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    world_id, level = request.param
    return world_id, level


@pytest.fixture
def world(case: tuple[str, str]) -> World:
    return make_world(*case)
