"""A second bookkeeper: objective and metrics of bad episodes, from their texts alone."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.planners.energy import read
from tests.contract.planners.site import Site
from tests.energy.drawn import task_of, world_of
from tokengym.envs.core.task import Task
from tokengym.envs.core.turn import Turn
from tokengym.envs.energy.world import EnergyWorld
from tokengym.envs.registry import spec

POWERS = st.one_of(
    st.lists(st.floats(-9.0, 9.0), min_size=1, max_size=24),
    st.sampled_from([[0.0], [9.0], [-9.0], [-9.0, 9.0], [0.005, -0.005]]),
)


def replies(world: EnergyWorld, task: Task, powers: list[float]) -> tuple[Turn, Any, int]:
    """Play powers in turn; returns the last Turn, the books, and the first step that missed."""
    turn = world.start(task)
    books, first, step = read(turn.text), -1, 0
    devices = world.compiled.plant.devices
    while not turn.done:
        books.look(turn.text)
        told = {name: round(powers[(step + n) % len(powers)], 2) for n, name in enumerate(devices)}
        books.advance(told)
        turn = world.reply("\n".join(f"{name} {power:.2f}" for name, power in told.items()))
        if books.missed and first < 0:
            first = step
        step += 1
    return turn, books, first


@pytest.mark.nightly
@pytest.mark.parametrize("level", [one for one in spec("energy").levels if one != "soma"])
@settings(max_examples=12)
@given(index=st.integers(0, 3), powers=POWERS)
def test_cost_and_misses_follow_from_the_texts_and_the_replies(
    level: str, index: int, powers: list[float]
) -> None:
    turn, books, first = replies(world_of(level), task_of(level, index), powers)
    books.close()
    last = turn.metrics
    assert last["total_money_cost"] == pytest.approx(books.cost / 100.0, abs=1e-6)
    assert last["total_cost"] == pytest.approx(sum(books.missed), abs=1e-6)
    assert last["safety_floor_mass"] == float(bool(books.missed))
    assert ("The limit was always kept" in turn.text) == (not books.missed)
    if not isinstance(books, Site):  # a site's books of an hour are kept when the next begins
        assert last.get("first_violation_step", -1.0) == first


@given(index=st.integers(0, 3), powers=POWERS)
def test_what_an_early_end_leaves_counts_as_missed_in_full(index: int, powers: list[float]) -> None:
    world = world_of("small", terminate_on_violation=True)
    turn, books, first = replies(world, world.adopt(task_of("small", index)), powers)
    if first < 0:
        assert turn.metrics["violation_depth"] == 0.0
        return
    opening = world.start(world.adopt(task_of("small", index))).text
    reserves = [float(kwh) for kwh in re.findall(r"^\d+h: .+ reserve (\S+)$", opening, re.M)]
    costs = [*books.missed, *reserves[first + 1 :]]
    depth = 0.5 * max(costs) / max(reserves) + 0.5 * sum(costs) / sum(reserves)
    assert turn.metrics["violation_depth"] == pytest.approx(min(depth, 1.0), abs=1e-9)
