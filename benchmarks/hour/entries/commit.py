"""energy:commit, 2026-11-27, 10 minutes: stochastic dynamic programming over the listed days.

Written from prompts and 60 train Tasks alone. The prompt lists all days
with their chances, so the game is a stochastic unit commitment problem on a known scenario tree.
Backward stochastic dynamic programming values every state (hour, set of days still possible,
battery on a grid, hours that each generator must still run); it knows only what has been shown
so far, never the day itself. At every turn the exact battery is replayed from the replies given,
and the command with the least expected cost is taken from all powers in steps of 0.01 kW. Only
the total power is searched: BIG, whose kWh cost less in all 60 Tasks, gives all that it can.
A missed limit counts as a large sum, so that none is missed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

NUMBER = r"(\d+(?:\.\d+)?)"
ENERGY_STEP = 0.025  # kWh between two points of the battery's grid
POWER_STEP = 0.1  # kW between two powers tried in the backward pass
MISS = 6000.0  # ct that a missed limit counts as, before what is missed
MISS_KWH = 1000.0  # ct that each kWh missed counts as
TINY = 1e-9


@dataclass(frozen=True)
class Generator:
    low: float
    high: float
    hourly: float
    fuel: float
    start: float
    least: int  # hours that it runs once started


@dataclass(frozen=True)
class Site:
    big: Generator
    small: Generator
    floor: float
    capacity: float
    power: float
    efficiency: float
    wear: float
    first: float  # kWh in the battery at the start
    less: float
    more: float
    chances: dict[str, float]
    hours: list[dict[str, tuple[float, float]]]  # by hour and day: load, sun


Run = tuple[int, int]  # of BIG and SMALL: 0 is off, 1 + k is on for at least k more hours


def parse_generator(name: str, text: str) -> Generator:
    pattern = (
        rf"{name} gives 0 kW or from {NUMBER} to {NUMBER} kW.*?runs costs {NUMBER} ct, each kWh "
        rf"{NUMBER} ct more, each start {NUMBER} ct.*?at least {NUMBER} hour"
    )
    found = re.search(pattern, text)
    assert found
    low, high, hourly, fuel, start, least = map(float, found.groups())
    return Generator(low, high, hourly, fuel, start, int(least))


def numbers(pattern: str, text: str) -> list[float]:
    found = re.search(pattern.replace("#", NUMBER), text)
    assert found, pattern
    return [float(part) for part in found.groups()]


@lru_cache(maxsize=1)
def parse_site(text: str) -> Site:
    chances = re.findall(rf"([A-Z]) {NUMBER}%", text.split("their chances:")[1])
    total = sum(float(chance) for _, chance in chances)
    capacity, power = numbers(r"holds at most # kWh\. It takes or gives at most # kW", text)
    less, more = numbers(r"less than at the start costs # ct, each kWh more pays # ct", text)
    return Site(
        big=parse_generator("BIG", text),
        small=parse_generator("SMALL", text),
        floor=numbers("must hold at least # kWh", text)[0],
        capacity=capacity,
        power=power,
        efficiency=numbers("charged it stores # kWh", text)[0],
        wear=numbers("charged or given costs # ct of wear", text)[0],
        first=numbers("Now it is .*?battery holds # kWh", text)[0],
        less=less,
        more=more,
        chances={day: float(chance) / total for day, chance in chances},
        hours=[
            {
                day: (float(load), float(sun))
                for day, load, sun in re.findall(rf"([A-Z]) load {NUMBER} sun {NUMBER}", line)
            }
            for line in re.findall(r"^\d+h: .*$", text, re.M)
        ],
    )


def bounds(site: Site, on: tuple[bool, bool]) -> tuple[float, float]:
    """Least and most power of the generators that run."""
    low = on[0] * site.big.low + on[1] * site.small.low
    return low, on[0] * site.big.high + on[1] * site.small.high


def split(site: Site, on: tuple[bool, bool], total: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The powers of BIG and SMALL: BIG, whose kWh cost less, gives all it can."""
    if not on[0]:
        return 0 * total, total
    big = np.minimum(total - on[1] * site.small.low, site.big.high)
    return big, total - big


def step(
    site: Site, on: tuple[bool, bool], total: np.ndarray, battery: np.ndarray, need: float
) -> tuple[np.ndarray, np.ndarray]:
    """The battery after an hour and its cost, without starts; need is load less sun."""
    give = np.minimum(site.power, np.maximum(battery - site.floor, 0))
    high = bounds(site, on)[1]
    total = np.maximum(total, np.minimum(need - give, high))
    big, small = split(site, on, total)
    cost = site.big.fuel * big + site.small.fuel * small
    cost = cost + on[0] * site.big.hourly + on[1] * site.small.hourly
    net = total - need
    given = np.clip(-net, 0, np.minimum(site.power, battery))
    room = np.minimum(site.power, (site.capacity - battery) / site.efficiency)
    taken = np.clip(net, 0, room)
    after = battery - given + site.efficiency * taken
    unserved = np.maximum(-net - given, 0)
    missed = np.maximum(site.floor - after, 0) + unserved
    cost = cost + site.wear * (given + taken) + MISS_KWH * unserved
    return after, cost + np.where(missed > 1e-6, MISS + MISS_KWH * missed, 0)


def groups(site: Site, hour: int, days: str) -> dict[str, tuple[float, float]]:
    """The days that stay possible by what the hour shows: their load less sun, their chance."""
    shown: dict[tuple[float, float], str] = {}
    for day in days:
        key = site.hours[hour][day]
        shown[key] = shown.get(key, "") + day
    whole = sum(site.chances[day] for day in days)
    return {
        part: (load - sun, sum(site.chances[day] for day in part) / whole)
        for (load, sun), part in shown.items()
    }


def targets(generator: Generator, state: int) -> list[tuple[int, float]]:
    """The states in which a generator can run through the hour, as at its end, with starts."""
    if state == 0:
        return [(0, 0.0), (generator.least, generator.start)]
    return [(0, 0.0), (1, 0.0)] if state == 1 else [(state - 1, 0.0)]


def choices(site: Site, run: Run) -> list[tuple[Run, float]]:
    return [
        ((big, small), first + second)
        for big, first in targets(site.big, run[0])
        for small, second in targets(site.small, run[1])
    ]


class Values:
    """Least expected costs to come, by hour, days still possible, runs and battery."""

    def __init__(self, site: Site) -> None:
        self.site = site
        count = round((site.capacity - site.floor) / ENERGY_STEP) + 1
        self.grid = np.linspace(site.floor, site.capacity, count)
        self.scale = (count - 1) / (site.capacity - site.floor)
        self.shape = (site.big.least + 1, site.small.least + 1)
        self.tables: list[dict[str, np.ndarray]] = [{} for _ in range(len(site.hours) + 1)]
        levels = ["".join(site.chances)]
        nodes = [levels]
        for hour in range(len(site.hours)):
            levels = [part for days in levels for part in groups(site, hour, days)]
            nodes.append(levels)
        rest = self.grid - site.first
        end = np.where(rest > 0, -site.more * rest, -site.less * rest)
        for days in nodes[-1]:
            self.tables[-1][days] = np.broadcast_to(end, (*self.shape, count))
        for hour in reversed(range(len(site.hours))):
            for days in nodes[hour]:
                self.tables[hour][days] = self.backward(hour, days)

    def look(self, hour: int, days: str, runs: tuple, battery: np.ndarray) -> np.ndarray:
        """Values at these batteries (linear between grid points) for a block of runs."""
        place = np.clip((battery - self.grid[0]) * self.scale, 0, len(self.grid) - 1 - TINY)
        index = (place + 1e-7).astype(int)
        index = np.minimum(index, len(self.grid) - 2)
        part = np.maximum(place - index, 0)
        table = self.tables[hour][days][runs]
        left = np.take(table, index, axis=-1)
        rise = np.take(np.diff(table, axis=-1), index, axis=-1)
        return np.asarray(left + part * rise)

    def costs(
        self,
        hour: int,
        days: str,
        runs: tuple,
        on: tuple[bool, bool],
        total: np.ndarray,
        battery: np.ndarray,
    ) -> np.ndarray:
        """Expected costs from this hour on, without starts."""
        result: np.ndarray | float = 0.0
        for part, (need, chance) in groups(self.site, hour, days).items():
            after, cost = step(self.site, on, total, battery, need)
            result = result + chance * (cost + self.look(hour + 1, part, runs, after))
        return np.asarray(result)

    def backward(self, hour: int, days: str) -> np.ndarray:
        best = np.empty((*self.shape, len(self.grid)))
        for big in (False, True):
            for small in (False, True):
                low, high = bounds(self.site, (big, small))
                total = np.linspace(low, high, 1 + int(np.ceil((high - low) / POWER_STEP)))
                runs = (slice(1, None) if big else slice(1), slice(1, None) if small else slice(1))
                costs = self.costs(
                    hour, days, runs, (big, small), total[:, None], self.grid[None, :]
                )
                best[runs] = costs.min(axis=-2)
        table = np.empty_like(best)
        for run in np.ndindex(self.shape):
            table[run] = np.min(
                [best[target] + start for target, start in choices(self.site, run)], axis=0
            )
        return table

    def command(self, hour: int, days: str, run: Run, battery: float) -> tuple[float, float]:
        """The powers with the least expected cost."""
        best, powers = np.inf, (0.0, 0.0)
        for target, start in choices(self.site, run):
            on = (target[0] > 0, target[1] > 0)
            low, high = bounds(self.site, on)
            total = low + 0.01 * np.arange(round((high - low) / 0.01) + 1)
            costs = self.costs(hour, days, target, on, total, np.full(total.shape, battery))
            place = int(np.argmin(costs))
            if costs[place] + start < best - 1e-6:
                best = float(costs[place]) + start
                big, small = split(self.site, on, total[place : place + 1])
                powers = (float(big[0]), float(small[0]))
        return powers


@lru_cache(maxsize=1)
def solve(text: str) -> Values:
    return Values(parse_site(text))


def read_run(text: str) -> Run:
    states = []
    for name in ("BIG", "SMALL"):
        found = re.search(rf"{name} (is off|runs)(?: and must for (\d+))?", text)
        states.append(1 + int(found[2] or 0) if found and found[1] == "runs" else 0)
    return states[0], states[1]


def read_command(text: str) -> float:
    """All power that a reply of ours asks for."""
    return sum(float(power) for power in re.findall(rf"(?:BIG|SMALL) {NUMBER}", text))


def replay(site: Site, texts: list[str], replies: list[str]) -> tuple[str, float]:
    """The days still possible, and the battery, exactly where it agrees with what is shown."""
    days, battery = "".join(site.chances), site.first
    for hour, (text, said) in enumerate(zip(texts[1:], replies, strict=False)):
        load, sun = numbers("hour load was # and sun # kW", text)
        days = "".join(d for d in days if site.hours[hour][d] == (load, sun)) or days
        run = read_run(text.split("Now it is")[1])
        on = (run[0] > 0, run[1] > 0)
        total = np.array([read_command(said)])
        battery = float(step(site, on, total, np.array([battery]), load - sun)[0][0])
        shown = numbers("battery holds # kWh", text)[0]
        if not shown - 1e-6 <= battery <= shown + 0.0101:
            battery = shown
    return days, battery


def reply(texts: list[str], replies: list[str]) -> str:
    values = solve(texts[0])
    days, battery = replay(values.site, texts, replies)
    run = read_run(texts[-1].split("Now it is")[1])
    big, small = values.command(len(replies), days, run, battery)
    return f"BIG {big:.2f}\nSMALL {small:.2f}"
