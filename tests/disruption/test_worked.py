"""Laws of what a small model is to imitate in the debate: true, and of what the prompt shows."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokengym.envs.core.play import play
from tokengym.envs.disruption.baselines import BASELINES
from tokengym.envs.registry import make_world, spec

PREDICTOR = "predictor"


@given(index=st.integers(0, 2**31))
def test_what_is_claimed_and_computed_is_what_the_prompt_shows(index: int) -> None:
    world = make_world("disruption", "L2", prompt="terse")
    turn = world.start(world.task("train", index))
    (shown,) = re.findall(r"n_i (\d+), n_j (\d+), n_k (\d+)", turn.text)
    i, j, k = map(int, shown)
    *claims, steps, label, report = BASELINES["worked"](
        world, turn, np.random.default_rng(0)
    ).split("\n")
    assert claims == [f"CLAIM n_i = {i}", f"CLAIM n_j = {j}", f"CLAIM n_k = {k}"]
    assert steps == f"{i} - {j} = {i - j}"
    numbers = list(map(float, report.removeprefix("P ").split()))
    assert sum(numbers) == pytest.approx(1.0)
    assert max(numbers) in (0.5, 0.7, 0.9)
    names = ["disruptive", "consolidating", "neutral"]
    assert label == f"LABEL {names[int(np.argmax(numbers))]}"


@pytest.mark.nightly
@pytest.mark.parametrize("level", [name for name in spec("disruption").levels if name != "data"])
def test_rounding_and_plain_claims_cost_little(level: str) -> None:
    world = make_world("disruption", level, label="expected")
    earned: dict[str, list[float]] = {"worked": [], "logistic": []}
    for task in world.first_tasks("train", 200):
        for name, found in earned.items():
            record = play(world, task, BASELINES[name])
            found.append(record.returns[PREDICTOR])
            assert record.metrics["well_formed"] == 1.0
    worked, logistic = (float(np.mean(values)) for values in earned.values())
    assert worked > logistic - 0.1
