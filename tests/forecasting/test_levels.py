"""What levels are worth: rules of thumb leave room to learn, copying the prompt is blind."""

import re

import numpy as np
import numpy.typing as npt
import pytest

from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.forecasting.baselines import regressions
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import make_world

levels = pytest.mark.parametrize("level", LEVELS)
without_archive = pytest.mark.parametrize("level", [k for k, v in LEVELS.items() if not v.desk])
Floats = npt.NDArray[np.float64]
TASKS = 400
ROLE = "forecaster"


def test_a_regression_reads_cases_like_the_one_asked_about() -> None:
    weights = regressions("expert", LEVELS["expert"].families)
    # After the rule of thumb and a constant: what the sensor said after the same button, and by
    # how many more days of the same gauges had a fault.
    assert weights["buttons"][2] > 0.1
    assert weights["gauges"][2] > 0.1


def copy_example(_world: World, turn: Turn, _rng: np.random.Generator) -> str:
    """Repeat the example of a terse prompt, if this turn shows it."""
    found = re.search(r"^(?:Probability|Probabilities): .*\d$", turn.text, re.MULTILINE)
    return found[0] if found else ""


@pytest.mark.nightly
def test_the_example_has_nothing_to_do_with_the_answer() -> None:
    world = make_world("forecast", label="expected", prompt="terse")
    pairs = []
    for index in range(1500):
        task = world.task("train", index)
        copied = copy_example(world, world.start(task), np.random.default_rng(0))
        pairs.append((float(copied.split()[1]), task.answer["p_bayes"][1]))
    assert abs(np.corrcoef(np.array(pairs).T)[0, 1]) < 4.0 / 1500**0.5
