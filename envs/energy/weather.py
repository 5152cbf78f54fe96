"""Synthetic days: demand, sun, temperature, prices, outages, and forecasts with errors.

Powers are on a grid of 0.1 kW and prices on one of 0.01, so that an observation shows them exactly.
"""

import math

import numpy as np
import numpy.typing as npt

Hours = npt.NDArray[np.float64]
"""Hour of the day in [0, 24) by step."""

OUTAGE_HOURS = 2.0
"""How long an outage goes on, on average: after each hour it ends with a chance of one half."""
_WORST_ERROR = 0.5
_NORMAL_FROM_ABSOLUTE = math.sqrt(math.pi / 2.0)


def demand(rng: np.random.Generator, hours: Hours) -> Hours:
    """Household load in kW: a base, a morning and an evening bump, and noise."""
    morning, evening = rng.uniform(0.3, 1.0), rng.uniform(0.8, 2.2)
    shape = rng.uniform(0.3, 0.7) + _bump(hours, rng.normal(7.5, 0.5), 1.3) * morning
    shape = shape + _bump(hours, rng.normal(19.0, 0.7), 2.0) * evening
    load: Hours = np.maximum(shape * rng.lognormal(0.0, 0.2, len(hours)), 0.1).round(1)
    return load


def sun(rng: np.random.Generator, hours: Hours, peak: float) -> Hours:
    """Solar power in kW of a roof of `peak` kWp: a clear arc from 6 to 18 h under moving clouds."""
    arc = np.maximum(np.sin((hours - 6.0) / 12.0 * math.pi), 0.0)
    arc[(hours < 6.0) | (hours > 18.0)] = 0.0
    clear, cover = rng.uniform(0.3, 1.0), 0.0
    clouds = np.empty(len(hours))
    for step, shock in enumerate(rng.normal(0.0, 0.15, len(hours))):
        cover = 0.7 * cover + shock
        clouds[step] = min(max(clear + cover, 0.05), 1.0)
    return (0.85 * peak * arc * clouds).round(1)


def outdoors(rng: np.random.Generator, hours: Hours) -> Hours:
    """Outside temperature in °C on a heating day, coldest near 5 h."""
    mean, swing = rng.uniform(-3.0, 9.0), rng.uniform(2.0, 5.0)
    wave = -np.cos((hours - 5.0) / 12.0 * math.pi)
    drift = np.cumsum(rng.normal(0.0, 0.2, len(hours)))
    return (mean + swing * wave + drift).round(1)


def tariff(rng: np.random.Generator, hours: Hours) -> Hours:
    """Time-of-use price per kWh: night, day and an evening peak (0.21 to 0.59, as CityLearn's)."""
    night, day, peak = rng.uniform((0.21, 0.27, 0.46), (0.25, 0.34, 0.59)).round(2)
    begins = int(rng.integers(15, 18))
    ends = begins + int(rng.integers(4, 6))
    price: Hours = np.where((hours >= 7.0) & (hours < 23.0), day, night)
    price[(hours >= begins) & (hours < ends)] = peak
    return price


def day_ahead(rng: np.random.Generator, hours: Hours) -> Hours:
    """Day-ahead price per kWh: two humps, a dip at noon, on some days a spike or prices below 0."""
    mean = rng.uniform(0.06, 0.12)
    spikes, glut = rng.random() < 0.35, rng.random() < 0.35
    evening = rng.uniform(2.0, 4.0) if spikes else rng.uniform(0.4, 1.5)
    noon = rng.uniform(1.0, 2.2) if glut else rng.uniform(0.1, 0.8)
    shape = 1.0 + rng.uniform(0.2, 0.6) * _bump(hours, rng.normal(8.0, 0.5), 1.5)
    shape += evening * _bump(hours, rng.normal(19.0, 0.7), 1.5)
    shape -= noon * _bump(hours, rng.normal(13.0, 0.7), 2.2)
    shape -= rng.uniform(0.1, 0.4) * _bump(hours, 3.0, 2.5)
    price: Hours = (mean * shape + rng.normal(0.0, 0.004, len(hours))).round(3)
    return price


def outages(rng: np.random.Generator, chance: Hours, dt: float) -> npt.NDArray[np.int64]:
    """Grid status by step, 1 up and 0 down; the first is up. Outages have a mean length.

    Args:
        rng: randomness.
        chance: probability by step that an outage begins.
        dt: hours a step.
    """
    up = np.ones(len(chance), dtype=np.int64)
    for step in range(1, len(chance)):
        begins = rng.random() < chance[step]
        lasts = rng.random() >= dt / OUTAGE_HOURS
        up[step] = 1 - (begins if up[step - 1] else lasts)
    return up


def forecasts(
    rng: np.random.Generator,
    truth: Hours,
    error: tuple[float, float],
    updates: int,
    relative: bool = True,
    correlation: float = 0.0,
) -> tuple[Hours, list[list[float]]]:
    """Forecasts whose mean absolute error grows linearly with lead time, and shrinks with news.

    The error of one step is a sum over the news that is still to come of it, one independent part
    per step of lead; each later forecast of it lacks one part. So the newest forecast says all that
    older ones say.

    Args:
        rng: randomness.
        truth: what will happen.
        error: at no lead, and added per step of lead.
        updates: how many steps ahead each step has fresh forecasts.
        relative: whether errors are shares of the truth (at most one half) and forecasts >= 0.
        correlation: of the news at one lead for two steps in a row.

    Returns:
        the forecast made at the first step (which is known), and by step the fresh ones.
    """
    steps = len(truth)
    size_L = (error[0] + error[1] * np.arange(steps)) * _NORMAL_FROM_ABSOLUTE
    if relative:
        size_L = np.minimum(size_L, _WORST_ERROR * _NORMAL_FROM_ABSOLUTE)
    size_L[0] = 0.0
    news_LT = rng.normal(0.0, 1.0, (steps, steps))
    for step in range(1, steps) if correlation else ():
        news_LT[:, step] *= math.sqrt(1.0 - correlation**2)
        news_LT[:, step] += correlation * news_LT[:, step - 1]
    part_L = np.sqrt(np.diff(size_L**2, prepend=0.0))
    error_LT = np.cumsum(part_L[:, None] * news_LT, axis=0)
    known_LT = np.maximum(truth * (1.0 + error_LT), 0.0) if relative else truth + error_LT
    known_LT = known_LT.round(1)
    first: Hours = np.concatenate([truth[:1], known_LT.diagonal()[1:]])
    if not updates:
        return first, []
    later = [
        [
            float(known_LT[ahead, step + ahead])
            for ahead in range(1, min(updates, steps - 1 - step) + 1)
        ]
        for step in range(steps)
    ]
    return first, later


def _bump(hours: Hours, centre: float, width: float) -> Hours:
    distance = np.abs(hours - centre)
    return np.exp(-0.5 * (np.minimum(distance, 24.0 - distance) / width) ** 2)
