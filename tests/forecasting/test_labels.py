"""What the label costs in noise: how advantages follow those of the expected score."""

from functools import cache
from itertools import count, islice

import numpy as np
import numpy.typing as npt
import pytest

from tokengym.envs.registry import make_world

GROUPS, SIZE = 200, 8
LEVELS = ("easy", "hard", "expert")


@cache
def centred(level: str, label: str) -> npt.NDArray[np.float64]:
    """Group-centred advantages of forecasts that scatter around the exact probability."""
    world = make_world("forecast", level, label=label)
    rng = np.random.default_rng(3)
    tasks = (world.task("train", index) for index in count())
    yes_no = (task for task in tasks if len(task.answer["p_bayes"]) == 2)
    returns = np.empty((GROUPS, SIZE))
    for group, task in enumerate(islice(yes_no, GROUPS)):
        odds = np.clip(task.answer["p_bayes"][1], 0.02, 0.98)
        stated = 1.0 / (1.0 + np.exp(-np.log(odds / (1.0 - odds)) - 0.7 * rng.normal(size=SIZE)))
        for member, probability in enumerate(stated):
            world.start(task)
            world.reply(f"Probability: {probability:.3f}")
            returns[group, member] = world.returns["forecaster"]
    advantages: npt.NDArray[np.float64] = returns - returns.mean(axis=1, keepdims=True)
    return advantages


def correlation(level: str, label: str) -> float:
    pair = centred(level, label).ravel(), centred(level, "expected").ravel()
    return float(np.corrcoef(*pair)[0, 1])


@pytest.mark.nightly
@pytest.mark.parametrize("level", LEVELS)
def test_more_outcomes_bring_the_advantages_nearer_those_without_noise(level: str) -> None:
    found = [correlation(level, label) for label in ("outcome", "replay:8", "replay:64")]
    assert found == sorted(found)
    assert found[0] < 0.6 < 0.75 < found[-1]
