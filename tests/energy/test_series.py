"""Laws of the drawn days: homes always draw power, and forecasts err as their level says."""

import numpy as np
import numpy.typing as npt
import pytest

from tokengym.envs.energy import weather
from tokengym.envs.energy.generator import draw_microgrid
from tokengym.envs.energy.levels import LEVELS

HOMES = [name for name, level in LEVELS.items() if not level.days]
STEPS = 40


@pytest.mark.parametrize("name", HOMES)
def test_a_home_draws_power_at_every_hour(name: str) -> None:
    rng = np.random.default_rng(1)
    loads = [np.asarray(draw_microgrid(rng, LEVELS[name])["load"]) for _ in range(20)]
    assert min(load.min() for load in loads) >= 0.1
    # Not one and the same constant at night: a fridge, a heater, people.
    assert len(np.unique(np.concatenate(loads))) > 10


ERROR = (0.05, 0.02)
LEADS = 8


def errors(correlation: float, draws: int = 600) -> npt.NDArray[np.float64]:
    """Relative errors of forecasts of one step, shape (draws, lead 1 to `LEADS`, step)."""
    rng, truth = np.random.default_rng(2), np.full(STEPS, 50.0)
    found = np.full((draws, LEADS, STEPS), np.nan)
    for draw in range(draws):
        _, later = weather.forecasts(rng, truth, ERROR, LEADS, correlation=correlation)
        for made, values in enumerate(later):
            for lead, value in enumerate(values, 1):
                found[draw, lead - 1, made + lead] = value / 50.0 - 1.0
    return found[:, :, LEADS : STEPS - LEADS]


@pytest.mark.nightly
@pytest.mark.parametrize("correlation", sorted({level.correlation for level in LEVELS.values()}))
def test_forecasts_of_one_hour_are_one_process_that_news_corrects(correlation: float) -> None:
    """What one issue is wrong by remains in the next one, but for the news of one step."""
    error_DLT = errors(correlation)
    size_L = (ERROR[0] + ERROR[1] * np.arange(1, LEADS + 1)) * np.sqrt(np.pi / 2.0)
    assert np.nanstd(error_DLT, axis=(0, 2)) == pytest.approx(size_L, rel=0.06)
    for lead in range(1, LEADS):
        newer, older = error_DLT[:, lead - 1].ravel(), error_DLT[:, lead].ravel()
        assert np.corrcoef(newer, older)[0, 1] == pytest.approx(
            size_L[lead - 1] / size_L[lead], abs=0.03
        )
        news = older - newer
        assert abs(np.corrcoef(newer, news)[0, 1]) <= 0.08
        # Who averages both does worse than who believes the newer one.
        assert np.mean((newer + 0.5 * news) ** 2) > np.mean(newer**2)


@pytest.mark.parametrize("correlation", sorted({level.correlation for level in LEVELS.values()}))
def test_successive_news_correlates_as_the_level_says(correlation: float) -> None:
    error_DLT = errors(correlation)
    for lead in (0, LEADS - 1):
        before, after = error_DLT[:, lead, :-1].ravel(), error_DLT[:, lead, 1:].ravel()
        assert np.corrcoef(before, after)[0, 1] == pytest.approx(correlation, abs=0.04)


def test_the_first_forecast_is_of_the_same_process() -> None:
    rng, truth = np.random.default_rng(3), np.full(STEPS, 50.0)
    rows = [weather.forecasts(rng, truth, ERROR, LEADS, correlation=0.9) for _ in range(400)]
    first = np.array([row[0] for row in rows]) - truth
    fresh = np.array([row[1][1][:LEADS] for row in rows]) - 50.0
    assert (first[:, 0] == 0.0).all()
    for target in range(2, 2 + LEADS):
        lead = target - 1
        expected = (ERROR[0] + ERROR[1] * lead) / (ERROR[0] + ERROR[1] * target)
        found = np.corrcoef(first[:, target], fresh[:, lead - 1])[0, 1]
        assert found == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("dt", [0.25, 1.0])
def test_an_outage_lasts_and_is_as_frequent_as_stated(dt: float) -> None:
    rng, steps = np.random.default_rng(5), 20_000
    up = weather.outages(rng, np.full(steps, 0.03), dt)
    begins = np.flatnonzero((up[:-1] == 1) & (up[1:] == 0)) + 1
    ends = np.flatnonzero((up[:-1] == 0) & (up[1:] == 1)) + 1
    hours = dt * (ends - begins[: len(ends)])
    assert hours.mean() == pytest.approx(
        weather.OUTAGE_HOURS, abs=4.0 * hours.std() / len(ends) ** 0.5
    )
    chance = len(begins) / (up[:-1] == 1).sum()
    assert chance == pytest.approx(0.03, abs=4.0 * (0.03 / steps) ** 0.5)
