"""Laws of the splits of questions: twins, whose answers follow from each other, share one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import make_world

levels = pytest.mark.parametrize("level", LEVELS)
without_archive = pytest.mark.parametrize("level", [k for k, v in LEVELS.items() if not v.desk])


@without_archive
@given(index=st.integers(0, 10_000), split=st.sampled_from(SPLITS))
def test_twins_lie_in_one_split(level: str, index: int, split: str) -> None:
    world = make_world("forecast", level)
    instance = world.task(split, index).instance
    for changed in (
        {"negated": not instance["negated"]},
        {"asides": ["The log has 7 pages."]},
        {"shown": {**instance["shown"], "later": None}},
    ):
        assert world.split_of({**instance, **changed}) == split


@given(index=st.integers(0, 10_000))
def test_a_conjunction_in_another_order_lies_in_the_same_split(index: int) -> None:
    world = make_world("forecast", "hard", family="conjunction")
    task = world.task("test", index)
    swapped = {"parts": task.instance["shown"]["parts"][::-1]}
    assert world.split_of({**task.instance, "shown": swapped}) == "test"
