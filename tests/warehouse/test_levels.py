"""Levels and prompts: many, no answer to copy, all limits stated, costs that matter."""

import re

import numpy as np
import pytest

from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.play import play
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.levels import LEVELS


def test_shifts_that_begin_alike_lie_in_one_split() -> None:
    world, instance = world_of("pick_online"), dict(task_of("pick_online", 0).instance)
    late = {"value": 12, "due": 150}
    for value in range(30):
        orders = [
            {**order, **({**late, "value": value + 1} if order["release"] else {})}
            for order in instance["orders"]
        ]
        assert world.split_of({**instance, "orders": orders}) == "train"


@pytest.mark.parametrize("level", list(LEVELS))
def test_a_copy_of_the_terse_example_earns_nothing(level: str) -> None:
    world = world_of(level, prompt="terse")
    seen = ""

    def copy(_world: World, turn: Turn, _rng: np.random.Generator) -> str:
        nonlocal seen
        seen += turn.text
        return "\n".join(
            re.findall(r"TRIP O[\dO,]+(?:: A[\dA, -]+\d)?|REORDER S\d+ \d+|QUOTE \d+", seen)
        )

    for index in range(3):
        seen = ""
        task, _rng = task_of(level, index), np.random.default_rng(0)
        copied = play(world, task, copy)
        nothing = play(world, task, baselines("warehouse")["null"])
        assert copied.replies[0]
        assert copied.returns["lead"] == pytest.approx(nothing.returns["lead"], abs=1e-4)


def test_examples_differ_from_task_to_task() -> None:
    world = world_of("pick", prompt="terse")
    found = {
        re.findall(r"TRIP O\d[\dO,]*", world.start(task_of("pick", index)).text)[0]
        for index in range(8)
    }
    assert len(found) == 8
