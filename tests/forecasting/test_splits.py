"""Laws of the splits of synthetic questions: alike in all that matters, and without twins."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.task import plain
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.forecasting.oracle import predictive
from tokengym.envs.registry import make_world

levels = pytest.mark.parametrize("level", LEVELS)
DRAWS = {"easy": 25_000}
FEWER = 4_000
LARGEST_Z = 4.0


@levels
def test_splits_hold_alike_families_probabilities_and_labels(level: str) -> None:
    world, rng = make_world("forecast", level), np.random.default_rng(9)
    drawn: dict[str, list[list[float]]] = defaultdict(list)
    for _ in range(DRAWS.get(level, FEWER)):
        instance = plain(world._draw(rng))
        chance = predictive(instance)[-1]
        asked = [float(instance["family"] == name) for name in LEVELS[level].families]
        label = float(rng.random() < chance)
        row = [chance, abs(chance - 0.5), label, float(instance["negated"]), *asked]
        drawn[world.split_of(instance)].append(row)
    everything = [row for rows in drawn.values() for row in rows]
    for split in SPLITS:
        others = [row for name, rows in drawn.items() if name != split for row in rows]
        assert len(drawn[split]) > 0.1 * len(everything)
        assert np.all(np.abs(z_scores(drawn[split], others)) < LARGEST_Z)


def z_scores(one: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> np.ndarray:
    """The difference of the means of each column, in standard errors."""
    a, b = np.array(one), np.array(other)
    error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
    scores: np.ndarray = (a.mean(axis=0) - b.mean(axis=0)) / np.where(error > 0.0, error, 1.0)
    return scores


@levels
@settings(max_examples=30)
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
