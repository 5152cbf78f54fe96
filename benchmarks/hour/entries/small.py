"""energy:small, 2026-11-27, 6 minutes: stochastic dynamic programming on kriged forecasts.

Written from prompts and 60 train Tasks alone.

In the train Tasks a forecast is the outcome times lognormal noise that is independent by hour and
grows with the lead, so a forecast is to be shrunk towards what its neighbours say: the logs of load
and sun are a Gaussian process (a shape by hour, a level of the day, an AR(1) part; fitted by
maximum likelihood), and each turn conditions it on all forecasts and on the hours seen (kriging).
Given these margins the hours are near enough independent for stochastic dynamic programming over
the battery's energy alone. All costs are convex in that energy, so the best step of a stage is a
waterfall of targets, one for each marginal price (lost sun, sold sun, bought, saved and given
energy). The step of the present hour, whose load and sun are known, is searched to a hundredth of
a kW against the value function.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

NUMBER = r"(-?\d+(?:\.\d+)?)"
HOUR = re.compile(rf"^(\d+)h: load {NUMBER}, sun {NUMBER}, price {NUMBER}, reserve {NUMBER}", re.M)
NOW = re.compile(rf"Now it is (\d+)h: the battery holds {NUMBER} kWh, load {NUMBER}, sun {NUMBER}")
PENALTY = 3000.0  # ct per kWh missed beyond the tolerance
ROUNDING = 0.029  # standard deviation of rounding to tenths
STEP = 0.05  # kWh, the grid of the value function


@dataclass(frozen=True)
class Process:
    """The log of a quantity: its mean by hour from 6h on, and its standard deviations."""

    mean: tuple[float, ...]
    level: float
    hourly: float
    rho: float
    noise: float
    power: float


LOAD = Process(
    (
        -0.236,
        0.07,
        0.015,
        -0.227,
        -0.506,
        -0.667,
        -0.726,
        -0.674,
        -0.569,
        -0.342,
        -0.022,
        0.333,
        0.62,
        0.636,
        0.586,
        0.33,
        -0.019,
        -0.271,
    ),
    0.148,
    0.302,
    0.481,
    0.015,
    1.0,
)
SUN = Process(
    (-1.5, -0.539, 0.168, 0.418, 0.54, 0.735, 0.727, 0.737, 0.605, 0.348, 0.004, -0.628)
    + (-1.5,) * 6,
    0.41,
    0.35,
    0.461,
    0.0953,
    0.5,
)


@dataclass(frozen=True)
class Home:
    """The numbers of the rules."""

    capacity: float
    power: float
    keep: float
    wear: float
    grid: float
    sell: float
    export: float
    less: float
    more: float
    tolerance: float
    miss: float
    start: float


def read_home(text: str) -> Home:
    """Read the rules from the first text."""

    def find(pattern: str) -> float:
        found = re.search(pattern.replace("#", NUMBER), text)
        return float(found.group(1)) if found else 0.0

    return Home(
        capacity=find("holds at most #"),
        power=find("takes or gives at most #"),
        keep=find("it stores #"),
        wear=find("charged or given costs # ct"),
        grid=find("from the grid, at most #"),
        sell=find("sold for #"),
        export=find("ct per kWh, at most # kW; sun"),
        less=find("less than at the start costs #"),
        more=find("each kWh more pays #"),
        tolerance=find("a miss of up to #"),
        miss=find("it only costs #"),
        start=find("the battery holds # kWh, load"),
    )


def stored(home: Home, power: np.ndarray) -> np.ndarray:
    """The energy that a command adds to the battery."""
    return np.where(power > 0, power * home.keep, power / home.keep)


def limits(home: Home, energy: float, load: float, sun: float) -> tuple[float, float]:
    """The lowest and the highest power that can be done."""
    low = min(home.power, energy * home.keep, load + home.export)
    high = min(home.power, (home.capacity - energy) / home.keep, home.grid - load + sun)
    return -max(low, 0.0), max(high, 0.0)


def miss_cost(home: Home, energy: np.ndarray, reserve: float) -> np.ndarray:
    """The cost of holding less than the reserve."""
    missed = np.maximum(reserve - energy, 0.0)
    return home.miss * missed + PENALTY * np.maximum(missed - home.tolerance + 0.002, 0.0)


def flow_cost(home: Home, net: np.ndarray, price: float) -> np.ndarray:
    """The cost of buying (net above 0) or selling (below)."""
    sold = np.minimum(np.maximum(-net, 0.0), home.export)
    return np.asarray(price * np.maximum(net, 0.0) - home.sell * sold)


def predict(
    process: Process, hours: np.ndarray, forecast: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the logs of all hours, given forecasts and hours seen."""
    value = forecast.copy()
    value[: len(seen)] = seen
    lead = np.arange(len(hours), dtype=float)
    lead[: len(seen)] = 0.0
    known = value > 0.05
    mean = np.array(process.mean)[np.clip(hours - 6, 0, len(process.mean) - 1)]
    gap = np.abs(hours[:, None] - hours[None])
    prior = process.level**2 + process.hourly**2 * process.rho**gap
    floor = np.maximum(value, 0.05)
    noise = process.noise**2 * lead ** (2 * process.power) * (lead > 0) + (ROUNDING / floor) ** 2
    inner = prior[np.ix_(known, known)] + np.diag(noise[known])
    gain = np.linalg.solve(inner, prior[known]).T
    log_mean = mean + gain @ (np.log(floor) - mean)[known]
    variance = np.diag(prior) - np.sum(gain * prior[:, known], axis=1)
    return np.where(known, log_mean, -9.0), np.sqrt(np.maximum(variance, 0.0))


def nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the standard normal distribution."""
    points, weights = np.polynomial.hermite_e.hermegauss(count)
    return points, weights / weights.sum()


def targets(home: Home, grid: np.ndarray, value: np.ndarray, price: float) -> list[float]:
    """The energy to aim at for lost sun, sold sun, bought, saved and sold energy."""
    costs = (
        home.wear / home.keep,
        (home.sell + home.wear) / home.keep,
        (price + home.wear) / home.keep,
        (price - home.wear) * home.keep,
        (home.sell - home.wear) * home.keep,
    )
    return [float(grid[np.argmin(value + cost * grid)]) for cost in costs]


def stage(
    home: Home, grid: np.ndarray, value: np.ndarray, price: float, net: np.ndarray, odds: np.ndarray
) -> np.ndarray:
    """One step back: the expected cost before the hour, from that after it."""
    lost, sold, bought, saved, given = targets(home, grid, value, price)
    energy = grid[:, None]
    spare = np.maximum(-net, 0.0)[None]
    need = np.maximum(net, 0.0)[None]
    over = np.maximum(spare - home.export, 0.0)
    after = energy + np.clip(lost - energy, 0.0, over * home.keep)
    after = after + np.clip(sold - after, 0.0, (spare - over) * home.keep)
    after = after + np.maximum(bought - after, 0.0)
    after = after - np.clip(energy - saved, 0.0, need / home.keep) * (after <= energy)
    room = np.maximum(home.export - spare, 0.0) / home.keep
    after = after - np.clip(after - given, 0.0, room) * (after <= energy)
    after = np.clip(after, energy - home.power / home.keep, energy + home.power * home.keep)
    after = np.clip(after, 0.0, home.capacity)
    change = after - energy
    power = np.where(change > 0, change / home.keep, change * home.keep)
    cost = flow_cost(home, net[None] + power, price) + home.wear * np.abs(power)
    return np.asarray((cost + np.interp(after, grid, value)) @ odds)


def net_nodes(load: tuple[float, float], sun: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of load less sun, each given by mean and deviation of its log."""
    load_points, load_odds = nodes(5)
    sun_points, sun_odds = nodes(7 if sun[0] > -9.0 else 1)
    loads = np.exp(load[0] + load[1] * load_points)
    suns = np.exp(sun[0] + sun[1] * sun_points) * (sun[0] > -9.0)
    return (loads[:, None] - suns[None]).ravel(), (load_odds[:, None] * sun_odds[None]).ravel()


def final_cost(home: Home, energy: np.ndarray) -> np.ndarray:
    """The cost of ending with more or less than at the start."""
    more = energy - home.start
    return home.less * np.maximum(-more, 0.0) - home.more * np.maximum(more, 0.0)


def value_after(
    home: Home, table: np.ndarray, seen: np.ndarray, now: int
) -> tuple[np.ndarray, np.ndarray]:
    """The grid of energies and the expected cost from the end of hour `now` on."""
    reserves = table[:, 4]
    marks = np.concatenate([reserves, reserves - home.tolerance + 0.002, [home.start]])
    steps = np.linspace(0.0, home.capacity, int(home.capacity / STEP) + 1)
    grid = np.unique(np.clip(np.concatenate([steps, marks]), 0.0, home.capacity))
    hours = table[:, 0].astype(int)
    load = predict(LOAD, hours, table[:, 1], seen[:, 0])
    sun = predict(SUN, hours, table[:, 2], seen[:, 1])
    value = final_cost(home, grid)
    for k in range(len(table) - 1, now, -1):
        value = value + miss_cost(home, grid, reserves[k])
        net, odds = net_nodes((load[0][k], load[1][k]), (sun[0][k], sun[1][k]))
        value = stage(home, grid, value, table[k, 3], net, odds)
    return grid, value + miss_cost(home, grid, reserves[now])


def command(text: str) -> float:
    """The power of a reply."""
    found = re.search(NUMBER, text)
    return float(found.group(1)) if found else 0.0


def energy_now(home: Home, seen: np.ndarray, replies: list[str]) -> float:
    """The exact energy, which the texts show rounded down."""
    energy = home.start
    for (load, sun), text in zip(seen, replies, strict=False):
        low, high = limits(home, energy, load, sun)
        power = min(max(command(text), low), high)
        energy += float(stored(home, np.array(power)))
    return energy


def best_power(
    home: Home, energy: float, now: np.ndarray, grid: np.ndarray, value: np.ndarray
) -> float:
    """The cheapest command of the present hour, in hundredths of a kW."""
    load, sun, price = now
    low, high = limits(home, energy, load, sun)
    powers = np.arange(np.ceil(low * 100 - 1e-6), np.floor(high * 100 + 1e-6) + 1) / 100
    powers = np.append(powers, 0.0)
    cost = flow_cost(home, load - sun + powers, price) + home.wear * np.abs(powers)
    cost = cost + np.interp(energy + stored(home, powers), grid, value)
    return float(powers[np.argmin(cost)])


def reply(texts: list[str], replies: list[str]) -> str:
    """The command of this hour."""
    home = read_home(texts[0])
    table = np.array([[float(x) for x in row] for row in HOUR.findall(texts[0])])
    found = [NOW.search(text) for text in texts]
    seen = np.array([[float(m.group(3)), float(m.group(4))] for m in found if m])
    now = len(texts) - 1
    energy = energy_now(home, seen, replies)
    grid, value = value_after(home, table, seen, now)
    power = best_power(home, energy, np.append(seen[now], table[now, 3]), grid, value)
    return f"BATTERY {power:.2f}"
