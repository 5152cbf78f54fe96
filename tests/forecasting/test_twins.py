"""Laws of the twins: the odds of one follow from those of the other."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasting.twins import conjuncts, negated_twin
from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.core.world import World
from tokengym.envs.registry import baselines, make_world

YES_NO = ("frequency", "walk", "markov", "poisson")


def stated(world: World, task: Task) -> float:
    """What the oracle states of `task`."""
    turn = world.start(task)
    reply = baselines("forecast")["oracle"](world, turn, np.random.default_rng(0))
    return float(reply.partition(":")[2])


@given(st.integers(0, 200), st.sampled_from(YES_NO))
def test_a_forecast_and_its_negated_twin_sum_to_one(index: int, family: str) -> None:
    world = make_world("forecast", "hard", family=family)
    task = world.task("test", index)
    twin = negated_twin(task)
    assert world.start(twin).text != world.start(task).text
    assert stated(world, task) + stated(world, twin) == pytest.approx(1.0, abs=2e-6)
    assert negated_twin(twin) == task


@given(st.integers(0, 200), st.floats(0.0, 1.0))
def test_a_forecast_and_its_complement_earn_the_same_of_twins(index: int, p: float) -> None:
    world = make_world("forecast", "hard", family="poisson")
    task = world.task("test", index)
    world.start(task)
    turn = world.reply(f"Probability: {p:.3f}")
    world.start(negated_twin(task))
    twin = world.reply(f"Probability: {1.0 - round(p, 3):.3f}")
    assert turn.rewards["forecaster"] == pytest.approx(twin.rewards["forecaster"], abs=1e-6)


@pytest.mark.nightly
@given(st.integers(0, 200))
def test_a_conjunction_has_the_product_of_its_parts_odds(index: int) -> None:
    world = make_world("forecast", "hard", family="conjunction", prompt="terse")
    task = world.task("test", index)
    whole = task.answer["p_bayes"][0 if task.instance["negated"] else 1]
    parts = conjuncts(task)
    assert math.prod(part.answer["p_bayes"][1] for part in parts) == pytest.approx(whole)
    for part in parts:
        question = world.start(part).text.partition("\n\n")[2]
        assert question in world.start(task).text


def test_other_questions_have_no_such_twins() -> None:
    voter = make_world("forecast", "hard", family="voter").task()
    with pytest.raises(TaskError, match="negated"):
        negated_twin(voter)
    with pytest.raises(TaskError, match="no conjunction"):
        conjuncts(voter)
