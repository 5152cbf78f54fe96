"""Synthetic days: demand, sun, temperature, tariff, outages, and forecasts with errors.

Powers are on a grid of 0.1 kW and prices on one of 0.01, so that an observation shows them exactly.
"""

import math

import numpy as np
import numpy.typing as npt

Hours = npt.NDArray[np.float64]
"""Hour of the day in [0, 24) by step."""

OUTAGE_HOURS = 2.0
"""How long an outage goes on: each further hour of it is exp(-1/2) times as likely."""
_SWING, _PERSISTENCE = 0.7, 0.9
"""Standard deviation of the logarithm of a market price, and its correlation an hour later."""
_LEAST_PRICE = 0.13
"""Above every price of sales, so that buying to sell never pays."""
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


def gains(rng: np.random.Generator, hours: Hours) -> Hours:
    """Heat from people and windows in kW."""
    return (rng.uniform(0.1, 0.3) + 0.3 * sun(rng, hours, rng.uniform(1.0, 3.0))).round(1)


def tariff(rng: np.random.Generator, hours: Hours) -> Hours:
    """Time-of-use price per kWh: night, day and an evening peak (0.21 to 0.59, as CityLearn's)."""
    night, day, peak = rng.uniform((0.21, 0.27, 0.46), (0.25, 0.34, 0.59)).round(2)
    begins = int(rng.integers(15, 18))
    ends = begins + int(rng.integers(4, 6))
    price: Hours = np.where((hours >= 7.0) & (hours < 23.0), day, night)
    price[(hours >= begins) & (hours < ends)] = peak
    return price


def spot(
    rng: np.random.Generator, hours: Hours, updates: int
) -> tuple[Hours, Hours, list[list[float]]]:
    """Price per kWh on a market: a daily shape times the exponential of an AR(1) process.

    Forecasts are its conditional means (of the price before it is kept from falling too low):
    nobody can know more.

    Args:
        rng: randomness.
        hours: hour of the day by step.
        updates: how many steps ahead each step has fresh forecasts.

    Returns:
        the prices, the forecast made at the first step (which is known), and by step the fresh
        ones.
    """
    shape = rng.uniform(0.2, 0.3) * (1.0 + rng.uniform(0.1, 0.4) * _bump(hours, 18.5, 2.0))
    swing = rng.normal(0.0, _SWING, len(hours))
    for step in range(1, len(hours)):
        fresh = math.sqrt(1.0 - _PERSISTENCE**2) * swing[step]
        swing[step] = _PERSISTENCE * swing[step - 1] + fresh

    def expect(step: int, ahead: npt.NDArray[np.int64]) -> Hours:
        memory = _PERSISTENCE ** (ahead - step)
        mean = shape[ahead] * np.exp(memory * swing[step] + 0.5 * _SWING**2 * (1.0 - memory**2))
        prices: Hours = np.maximum(mean, _LEAST_PRICE).round(2)
        return prices

    steps = len(hours)
    prices: Hours = np.maximum(shape * np.exp(swing), _LEAST_PRICE).round(2)
    later = [
        expect(step, np.arange(step + 1, min(step + 1 + updates, steps))).tolist()
        for step in range(steps)
    ]
    return prices, expect(0, np.arange(steps)), later


def outages(rng: np.random.Generator, chance: Hours, dt: float) -> npt.NDArray[np.int64]:
    """Grid status by step, 1 up and 0 down; the first step is up, outages last `OUTAGE_HOURS`.

    Args:
        rng: randomness.
        chance: probability by step that an outage begins.
        dt: hours a step.
    """
    up = np.ones(len(chance), dtype=np.int64)
    for step in range(1, len(chance)):
        begins = rng.random() < chance[step]
        lasts = rng.random() < math.exp(-dt / OUTAGE_HOURS)
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
    """Forecasts whose mean absolute error grows linearly with lead time.

    Args:
        rng: randomness.
        truth: what will happen.
        error: at no lead, and added per step of lead.
        updates: how many steps ahead each step has fresh forecasts.
        relative: whether errors are shares of the truth (at most one half) and forecasts >= 0.
        correlation: of the errors of one forecast for two steps in a row.

    Returns:
        the forecast made at the first step (which is known), and by step the fresh ones.
    """
    steps, innovation = len(truth), math.sqrt(1.0 - correlation**2)

    def predict(targets: npt.NDArray[np.int64], leads: npt.NDArray[np.int64]) -> Hours:
        """Return forecasts of shape (made, step ahead); those beyond the last step are unused."""
        inside = targets < steps
        noise = np.zeros(targets.shape)
        noise[inside] = rng.normal(0.0, 1.0, int(inside.sum()))
        for step in range(1, targets.shape[-1]) if correlation else ():
            noise[:, step] = correlation * noise[:, step - 1] + innovation * noise[:, step]
        size = (error[0] + error[1] * leads) * _NORMAL_FROM_ABSOLUTE
        true = truth[np.minimum(targets, steps - 1)]
        if not relative:
            degrees: Hours = (true + size * noise).round(1)
            return degrees
        size = np.minimum(size, _WORST_ERROR * _NORMAL_FROM_ABSOLUTE)
        powers: Hours = np.maximum(true * (1.0 + size * noise), 0.0).round(1)
        return powers

    leads = np.arange(steps)[None, :]
    (first,) = predict(leads, leads)
    first[0] = truth[0]
    if not updates:
        return first, []
    leads = np.arange(1, updates + 1)[None, :]
    later = predict(np.arange(steps)[:, None] + leads, leads).tolist()
    return first, [row[: steps - 1 - step] for step, row in enumerate(later)]


def _bump(hours: Hours, centre: float, width: float) -> Hours:
    distance = np.abs(hours - centre)
    return np.exp(-0.5 * (np.minimum(distance, 24.0 - distance) / width) ** 2)
