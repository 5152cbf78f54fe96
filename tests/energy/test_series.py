"""Laws of the drawn days: homes always draw power, and forecasts err as their level says."""

import numpy as np
import pytest

from tokengym.envs.energy import weather
from tokengym.envs.energy.generator import draw_microgrid
from tokengym.envs.energy.levels import LEVELS

HOMES = [name for name, level in LEVELS.items() if not level.house]
STEPS = 40


@pytest.mark.parametrize("name", HOMES)
def test_a_home_draws_power_at_every_hour(name: str) -> None:
    rng = np.random.default_rng(1)
    loads = [np.asarray(draw_microgrid(rng, LEVELS[name])["load"]) for _ in range(20)]
    assert min(load.min() for load in loads) >= 0.1
    # Not one and the same constant at night: a fridge, a heater, people.
    assert len(np.unique(np.concatenate(loads))) > 10


@pytest.mark.parametrize("correlation", sorted({level.correlation for level in LEVELS.values()}))
def test_errors_of_one_forecast_persist_as_much_as_the_level_says(correlation: float) -> None:
    rng, truth = np.random.default_rng(2), np.full(STEPS, 50.0)
    errors = []
    for _ in range(300):
        first, _ = weather.forecasts(rng, truth, (0.1, 0.0), 0, correlation=correlation)
        errors.append(np.asarray(first)[1:] - truth[1:])
    found = np.mean([np.corrcoef(row[:-1], row[1:])[0, 1] for row in errors])
    # In so short a series the estimate is low by about (1 + 4 r) / n.
    assert found == pytest.approx(correlation - (1.0 + 4.0 * correlation) / STEPS, abs=0.05)


def test_some_level_has_errors_that_persist() -> None:
    assert LEVELS["spot"].correlation == 0.9
