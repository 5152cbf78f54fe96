"""What honest probabilities earn over others with the same label."""

import numpy as np
import pytest

from tokengym.envs.disruption.grammar import PredictorAnswer
from tokengym.envs.disruption.literature import Probabilities, peaked
from tokengym.envs.disruption.oracle import likeliest
from tokengym.envs.disruption.world import DisruptionWorld
from tokengym.envs.registry import make_world

FREQUENCIES: Probabilities = (1 / 3, 1 / 3, 1 / 3)
"""Of the labels before anything is shown: papers are drawn so that all are as frequent."""


@pytest.mark.nightly
@pytest.mark.parametrize("level", ["L0"])
def test_honest_reports_beat_certainty_and_frequencies(level: str) -> None:
    world = DisruptionWorld.cast(make_world("disruption", level, label="expected"))
    leads = []
    for task in world.first_tasks("test", 400):
        (honest,) = world.compile(task).own
        label = likeliest(honest)
        returns = []
        for report in (honest, peaked(label, 1.0), FREQUENCIES):
            said = PredictorAnswer((label,), (report,), ()).write(world.targets, decimals=6)
            world.start(task)
            for reply in (said, "ARGUE nothing", said):
                world.reply(reply)
            returns.append(world.returns["predictor"])
        leads.append(returns[0] - np.array(returns[1:]))
    over = np.array(leads)
    low = over.mean(axis=0) - 1.96 * over.std(axis=0, ddof=1) / np.sqrt(len(over))
    assert low[0] >= 0.15
    assert low[1] >= 0.05
