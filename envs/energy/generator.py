"""Drawing instances: a plant of one level with its days, as plain values.

Every number is rounded to what the texts show, so that a plan made from the text is never refused
or punished by hidden digits.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tokengym.envs.energy import weather
from tokengym.envs.energy.house import House
from tokengym.envs.energy.levels import EnergyLevel

WEAR = 0.02
"""Money per kWh moved through the battery (pymgrid's cycle cost)."""
IMPORT_CAP, EXPORT_CAP = 10.0, 3.0
"""kW, as the soma configurations have them."""
_ROOF = (2.4, 6.0)
"""Range of the peak power of a roof, kW."""
_OUTSIDE_ERROR = (0.3, 0.07)
"""Mean absolute error of a forecast of the temperature in K, at no lead and per step of lead."""
_STORM = 4.0
_NO_DEVICES: Mapping[str, float] = MappingProxyType({})


def draw_microgrid(
    rng: np.random.Generator, level: EnergyLevel, devices: Mapping[str, float] = _NO_DEVICES
) -> Mapping[str, Any]:
    """Draw a synthetic home microgrid: the fields of `Microgrid`. For `devices` see `draw_home`."""
    start, hours = _draw_hours(rng, level)
    shown = np.concatenate([(hours[0] - np.arange(level.history, 0, -1) * _dt(level)) % 24, hours])
    load = weather.demand(rng, shown)
    pv = weather.sun(rng, shown, rng.uniform(*_ROOF))
    days = {
        "start": start,
        "load": load[level.history :],
        "pv": pv[level.history :],
        **draw_tariff(rng, level, hours),
        "before": [[a, b] for a, b in zip(load, pv, strict=True)][: level.history],
    }
    if level.house:
        days["outside"] = weather.outdoors(rng, hours)
    return draw_home(rng, level, hours, days, devices)


def draw_tariff(
    rng: np.random.Generator, level: EnergyLevel, hours: weather.Hours
) -> Mapping[str, Any]:
    """Draw the fields price and resale of a home whose data have no prices.

    At day-ahead prices a home pays grid fees and taxes on top, and is paid a little less.
    """
    if level.house:
        market = weather.day_ahead(rng, hours)
        fees, margin = round(rng.uniform(0.06, 0.16), 3), round(rng.uniform(0.005, 0.02), 3)
        return {"price": (market + fees).round(3), "resale": (market - margin).round(3)}
    price = weather.tariff(rng, hours)
    return {"price": price, "resale": np.full(len(hours), round(rng.uniform(0.04, 0.12), 2))}


def draw_home(
    rng: np.random.Generator,
    level: EnergyLevel,
    hours: weather.Hours,
    days: Mapping[str, Any],
    devices: Mapping[str, float] = _NO_DEVICES,
) -> Mapping[str, Any]:
    """Draw the equipment of a home whose time series are given: the fields of `Microgrid`.

    Args:
        rng: randomness.
        level: the level.
        hours: hour of the day by step.
        days: the fields start, load, pv, price, resale and before, maybe up and carbon; outside of
            a house.
        devices: what is not drawn: battery_kwh, battery_kw, import_cap_kw and export_cap_kw, and
            pv_scale, a factor of the sun.
    """
    dt = _dt(level)
    capacity, power = round(rng.uniform(4.0, 16.0), 1), round(rng.uniform(3.3, 5.0), 1)
    capacity, power = devices.get("battery_kwh", capacity), devices.get("battery_kw", power)
    scale = devices.get("pv_scale", 1.0)
    if scale != 1.0:
        before = [[load, round(scale * pv, 2)] for load, pv in days["before"]]
        days = {**days, "pv": (scale * days["pv"]).round(2), "before": before}
    efficiency = round(rng.uniform(0.9, 0.95) ** 0.5, 2)
    calm, guarded = (capacity * rng.uniform(*band) for band in level.reserve)
    begins = int(rng.integers(6, 21))
    guard = (hours - begins) % 24.0 < rng.integers(3, 7)
    schedule = np.where(guard, guarded, calm).round(1)
    energy = rng.uniform(schedule[0], max(0.5 * capacity, schedule[0]))
    chance = level.outages * dt * np.where(guard, _STORM, 1.0)
    up = weather.outages(rng, chance, dt)
    load_forecast, load_updates = weather.forecasts(
        rng, days["load"], level.demand_error, level.updates, correlation=level.correlation
    )
    pv_forecast, pv_updates = weather.forecasts(
        rng, days["pv"], level.sun_error, level.updates, correlation=level.correlation
    )
    known = days["price"]
    heated = _draw_house(rng, level, hours, known, days["outside"]) if level.house else {}
    return {
        "dt": dt,
        "capacity": capacity,
        "power": power,
        "efficiency": efficiency,
        "energy": max(np.floor(energy * 10.0) / 10.0, schedule[0]),
        "import_cap": devices.get("import_cap_kw", IMPORT_CAP),
        "export_cap": devices.get("export_cap_kw", EXPORT_CAP),
        "wear": WEAR,
        "critical": 0.5 if level.outages else 1.0,
        "regain": round(0.4 * power * dt, 2),
        "schedule": schedule,
        "up": up,
        "chance": chance.round(4) if level.outages else [],
        "outage_hours": weather.OUTAGE_HOURS if level.outages else 0.0,
        "load_forecast": load_forecast,
        "pv_forecast": pv_forecast,
        "load_updates": load_updates,
        "pv_updates": pv_updates,
        "car": _draw_car(rng, hours) if level.house else [],
        # A store is worth nothing, never less, where energy itself is.
        "price_of_missing": round(max(*known, 0.0) / efficiency, 3),
        "price_of_extra": round(max(min(known), 0.0) * efficiency, 3),
        **days,
        "price": known.round(3),
        **heated,
    }


def _draw_house(
    rng: np.random.Generator,
    level: EnergyLevel,
    hours: weather.Hours,
    price: weather.Hours,
    outside: weather.Hours,
) -> Mapping[str, Any]:
    """Draw the demand charge, house, comfort band and weather forecasts of a `Microgrid`."""
    comfortable = float(rng.choice([20.0, 20.5, 21.0]))
    wakes, sleeps = int(rng.integers(5, 8)), int(rng.integers(21, 24))
    awake = (hours >= wakes) & (hours < sleeps)
    forecast, updates = weather.forecasts(
        rng, outside, _OUTSIDE_ERROR, level.updates, False, level.correlation
    )
    charge = round(rng.uniform(0.15, 0.4), 2)
    house = House(
        capacity=round(rng.uniform(4.0, 8.0), 1),
        loss=round(1.0 / rng.uniform(5.0, 8.0), 3),
        cop=round(rng.uniform(2.6, 3.4), 1),
        slope=round(rng.uniform(0.05, 0.1), 2),
        power=round(rng.uniform(2.5, 4.0), 1),
        temperature=comfortable,
        gain=round(rng.uniform(0.2, 0.5), 1),
        window=round(rng.uniform(0.1, 0.3), 2),
        high=comfortable + 1.0,
        price_of_missing=0.0,
        price_of_extra=0.0,
    )
    # A degree is missed at no less than what heat may cost in the coldest hour, nor is one stored
    # for more than it costs in the mildest.
    dearest = house.capacity / house.cop_at(min(forecast)) * (max(*price, 0.0) + charge)
    cheapest = house.capacity / house.cop_at(max(forecast)) * max(min(price), 0.0)
    priced = house._replace(price_of_missing=round(dearest, 3), price_of_extra=round(cheapest, 3))
    return {
        "demand_charge": charge,
        "house": list(priced),
        "low": np.where(awake, comfortable - 1.0, comfortable - 3.0),
        "outside_forecast": forecast,
        "outside_updates": updates,
    }


def draw_site(rng: np.random.Generator, level: EnergyLevel) -> Mapping[str, Any]:
    """Draw an off-grid site with the days that may come: the fields of `Site`.

    All days begin alike; after a few hours they part by weather, later by load.
    """
    begins, hours = _draw_hours(rng, level)
    litre = rng.uniform(1.5, 1.9)
    generators = []
    for rating, idle, fuel, start, (shortest, longest) in (
        ((5.5, 7.0), 0.08, 0.25, (3.0, 7.0), (3, 5)),
        ((2.0, 3.2), 0.09, 0.29, (1.2, 3.0), (2, 3)),
    ):
        kw, start_costs = round(rng.uniform(*rating), 1), round(rng.uniform(*start), 1)
        prices = [round(idle * kw * litre, 3), round(fuel * litre, 3), start_costs]
        generators.append([kw, *prices, int(rng.integers(shortest, longest + 1))])
    (big, no_load, fuel, _, _), (small, *_) = generators
    loads, suns = _draw_days(rng, level, hours, rng.uniform(0.75, 0.95) * (big + small))
    capacity = round(rng.uniform(4.0, 8.0), 1)
    floor = round(0.15 * capacity, 1)
    chances = (2 + rng.multinomial(20 - 2 * level.days, [1.0 / level.days] * level.days)) / 20
    return {
        "start": begins,
        "dt": _dt(level),
        "power": round(rng.uniform(3.0, 5.0), 1),
        "price": [],
        "price_of_missing": round((no_load / big + fuel) / 0.9, 3),
        "price_of_extra": round(0.8 * fuel, 3),
        "capacity": capacity,
        "efficiency": 0.9,
        "energy": round(rng.uniform(floor, capacity), 1),
        "wear": round(rng.uniform(0.02, 0.05), 2),
        "floor": floor,
        "generators": generators,
        "chances": chances,
        "loads": loads,
        "suns": suns,
        "day": int(rng.choice(level.days, p=chances)),
    }


def _draw_days(
    rng: np.random.Generator, level: EnergyLevel, hours: weather.Hours, most: float
) -> tuple[weather.Hours, weather.Hours]:
    """Draw loads and suns in kW by day and hour, the largest load being `most`."""
    early, late = int(rng.integers(2, 6)), int(rng.integers(8, 16))
    load = np.tile(weather.demand(rng, hours), (level.days, 1))
    sun = np.tile(weather.sun(rng, hours, rng.uniform(4.0, 8.0)), (level.days, 1))
    groups = np.arange(level.days) // 2 if level.days > 4 else np.arange(level.days) % 2
    for group in np.unique(groups):
        same = groups == group
        load[same, early:] *= rng.lognormal(0.0, 0.1, len(hours) - early) * rng.uniform(0.6, 1.4)
        sun[same, early:] *= rng.uniform(0.1, 1.0)
    for day in range(level.days):
        load[day, late:] *= rng.lognormal(0.0, 0.1, len(hours) - late) * rng.uniform(0.3, 1.8)
        sun[day, late:] *= rng.uniform(0.1, 1.0)
    return (load * most / load.max()).round(1), sun.round(1)


def hours_of_day(start: int, steps: int, minutes: int) -> weather.Hours:
    """Return the hour of the day by step, from the minute of the day at which the first begins."""
    return ((start + minutes * np.arange(steps)) % 1440) / 60.0


def _draw_hours(rng: np.random.Generator, level: EnergyLevel) -> tuple[int, weather.Hours]:
    """Draw the minute of the day at which an episode begins; return it with `hours_of_day`."""
    first, last = level.begins
    start = 60 * int(rng.integers(first, last + 1))
    return start, hours_of_day(start, level.steps, level.minutes)


def _dt(level: EnergyLevel) -> float:
    return level.minutes / 60.0


def _draw_car(rng: np.random.Generator, hours: weather.Hours) -> list[float]:
    """Draw the car of a home, there from evening to morning; it charges at 0 kW or more."""
    home, away = int(rng.integers(17, 21)), int(rng.integers(6, 9))
    arrives = int(np.argmax(np.floor(hours) == home))
    departs = arrives + int(np.argmax(np.floor(hours[arrives:]) == away))
    return [arrives, departs, round(rng.uniform(6.0, 12.0), 1), 3.7, 2.0]
