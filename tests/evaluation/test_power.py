"""What a paired evaluation finds: a simulation of 1,000 of them, by exact probabilities."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tokengym.agents.evaluation.scripted import play_all
from tokengym.agents.scale.level_scale import Earned
from tokengym.envs import baselines, make_world
from tokengym.envs.forecasting.world import ForecastWorld
from tokengym.rewards.arrays import Floats
from tokengym.rewards.clustered import paired_comparison

pytestmark = pytest.mark.nightly

POOL, TASKS, EVALUATIONS = 600, 128, 1000
WORSE = 0.03
Forecasts = tuple[Floats, Floats]


@pytest.fixture(scope="module")
def forecasts() -> Forecasts:
    """The exact probability of each Task of a pool, and what `empirical` states."""
    world = ForecastWorld.cast(make_world("forecast", "easy"))
    tasks = world.first_tasks("test", POOL)
    played = play_all(world, tasks, baselines("forecast")["empirical"])
    stated = np.array([episode.metrics["probability"] for episode in played])
    exact = []
    for task in tasks:
        world.start(task)
        exact.append(world.best_forecast[1])
    known = np.array(exact), stated
    assert Earned.of_played(played, "forecaster").used_T == pytest.approx(
        expected(*known), abs=2**-15
    )
    return known


def expected(exact: Floats, stated: Floats) -> Floats:
    """Return the expected return of a stated probability by hand: half-Brier, and the form."""
    return 0.05 + 0.95 * (1.0 - (stated - exact) ** 2 - exact * (1.0 - exact))


def paid(outcome: Floats, stated: Floats) -> Floats:
    return 0.05 + 0.95 * (1.0 - (stated - outcome) ** 2)


def moved(stated: Floats, by: float, rng: np.random.Generator) -> Floats:
    """State each probability a little too high or too low."""
    return np.clip(stated + by * rng.choice([-1.0, 1.0], stated.shape), 0.0, 1.0)


def offset(forecasts: Forecasts) -> float:
    """Return how far probabilities must be moved to lose `WORSE` on average."""
    exact, stated = forecasts
    pool = np.tile(exact, 20), np.tile(stated, 20)
    low, high = 0.0, 0.5
    for _ in range(20):
        middle = (low + high) / 2
        moved_by = moved(pool[1], middle, np.random.default_rng(0))
        lost = float((expected(*pool) - expected(pool[0], moved_by)).mean())
        low, high = (middle, high) if lost < WORSE else (low, middle)
    return low


def share_found(
    forecasts: Forecasts, first: Callable[[Floats, np.random.Generator], Floats], by: float
) -> dict[str, float]:
    """Return how often evaluations of two forecasters find that they differ, by unit."""
    rng, pool = np.random.default_rng(1), np.stack(forecasts)
    found = {"expected": 0, "outcomes": 0}
    for _ in range(EVALUATIONS):
        exact, stated = pool[:, rng.integers(POOL, size=TASKS)]
        outcome = (rng.random(TASKS) < exact).astype(np.float64)
        one, other = first(stated, rng), moved(stated, by, rng)
        for unit, of, truth in (("expected", expected, exact), ("outcomes", paid, outcome)):
            pair = paired_comparison(of(truth, one)[:, None], of(truth, other)[:, None])
            found[unit] += pair.p_value < 0.05
    return {unit: count / EVALUATIONS for unit, count in found.items()}


def test_expected_returns_find_three_hundredths_on_128_tasks(forecasts: Forecasts) -> None:
    found = share_found(forecasts, lambda stated, _: stated, offset(forecasts))
    assert found["expected"] >= 0.8
    assert found["outcomes"] < found["expected"]


def test_policies_that_earn_the_same_are_seldom_told_apart(forecasts: Forecasts) -> None:
    by = offset(forecasts)
    found = share_found(forecasts, lambda stated, rng: moved(stated, by, rng), by)
    most = stats.binom.ppf(0.999, EVALUATIONS, 0.05) / EVALUATIONS
    assert max(found.values()) <= most
