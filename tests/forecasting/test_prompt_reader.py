"""The full prompt says all that a forecast needs: who reads it alone forecasts like the oracle."""

import pytest

from tests.contract.planners.forecast import Forecaster
from tokengym.envs.core.play import play
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.envs.registry import baselines, make_world

ASKED = [(level, name) for level, row in LEVELS.items() for name in row.families]


@pytest.mark.parametrize(("level", "family"), ASKED)
def test_a_reader_of_the_prompt_earns_what_the_oracle_earns(level: str, family: str) -> None:
    world = make_world("forecast", level, family=family, label="expected")
    for index in range(8):
        task = world.task("test", index)
        best = play(world, task, baselines("forecast")["oracle"]).returns["forecaster"]
        reader = Forecaster()
        turn = world.start(task)
        while not turn.done:
            turn = world.reply(reader.reply(turn.text))
            assert turn.metrics["well_formed"]
            assert turn.metrics["regret"] < 1e-5
        reader.end(turn.text)
        assert world.returns["forecaster"] == pytest.approx(best, abs=2e-5)
