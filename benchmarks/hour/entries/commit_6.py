"""energy:commit_6, 2026-11-27, 9 minutes: stochastic dynamic program on the tree of days.

Written from prompts and 60 train Tasks alone.

The field calls the game stochastic unit commitment on a scenario tree. The listed days make a
tree of beliefs: the set of days that fit what was seen so far. Backward induction over belief,
status of both generators and a grid of battery energies gives the expected cost to go, with the
automatic raise of running generators as recourse. Each turn then searches all commands in steps
of 0.01 kW from the exact battery energy, which is tracked by simulating the stated rules.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

Days = tuple[int, ...]
Array = np.ndarray[Any, np.dtype[np.float64]]

CELLS = 130  # battery grid cells between the limit and full
LEVEL_KW = 0.1  # step of the commands that the backward induction tries
FINE_KW = 0.01  # step of the commands that a turn tries
UNSERVED_CT = 1000.0  # stated price of load that is not served
MISS_CT = 4000.0  # what one hour below the limit is taken to cost, and
MISS_KWH_CT = 3000.0  # what each kWh missed is taken to cost besides
EPS = 1e-9


@dataclass(frozen=True)
class Unit:
    """One generator: power range, prices and minimum run."""

    low: float
    high: float
    hour: float
    kwh: float
    start: float
    stay: int

    def moves(self, status: int) -> list[tuple[bool, int, float]]:
        """What may follow `status` (0 off, 1 + hours it must still run): on, next status, price."""
        if status == 0:
            return [(False, 0, 0.0), (True, self.stay, self.start)]
        if status == 1:
            return [(False, 0, 0.0), (True, 1, 0.0)]
        return [(True, status - 1, 0.0)]


@dataclass(frozen=True)
class Site:
    """All that the first text says."""

    big: Unit
    small: Unit
    floor: float
    full: float
    rate: float
    store: float
    wear: float
    less: float
    more: float
    begin: float
    chance: tuple[float, ...]
    load: tuple[tuple[float, ...], ...]  # by hour, then by day
    sun: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """One hour's end for many battery energies and commands."""

    energy: Array
    cost: Array


def numbers(pattern: str, text: str) -> list[float]:
    """The groups of the first match of `pattern`, as numbers."""
    found = re.search(pattern.replace("#", r"(\d+(?:\.\d+)?)"), text)
    if found is None:
        raise ValueError(pattern)
    return [float(group) for group in found.groups()]


def read_unit(name: str, text: str) -> Unit:
    """The generator called `name`."""
    low, high, hour, kwh, start, stay = numbers(
        rf"- {name} gives 0 kW or from # to # kW.*?runs costs # ct, each kWh # ct more, "
        r"each start # ct\. Once started, it runs for at least # hour",
        text,
    )
    return Unit(low, high, hour, kwh, start, int(stay))


def read_site(text: str) -> Site:
    """Reads the first text."""
    (floor,) = numbers(r"battery must hold at least # kWh", text)
    full, rate = numbers(r"holds at most # kWh\. It takes or gives at most # kW", text)
    (store,) = numbers(r"Of each kWh charged it stores # kWh", text)
    (wear,) = numbers(r"charged or given costs # ct", text)
    less, more = numbers(r"less than at the start costs # ct, each kWh more pays # ct", text)
    (begin,) = numbers(r"the battery holds # kWh", text)
    chances = re.search(r"their chances: (.*?)\. For each hour", text)
    rows = re.findall(r"^\d+h: (.*)$", text, re.MULTILINE)
    pairs = [re.findall(r"load ([\d.]+) sun ([\d.]+)", row) for row in rows]
    return Site(
        big=read_unit("BIG", text),
        small=read_unit("SMALL", text),
        floor=floor,
        full=full,
        rate=rate,
        store=store,
        wear=wear,
        less=less,
        more=more,
        begin=begin,
        chance=tuple(
            float(x) / 100 for x in re.findall(r"([\d.]+)%", chances[1] if chances else "")
        ),
        load=tuple(tuple(float(load) for load, _ in row) for row in pairs),
        sun=tuple(tuple(float(sun) for _, sun in row) for row in pairs),
    )


def span(site: Site, big: bool, small: bool) -> tuple[float, float]:
    """Least and most power of the generators that run."""
    low = site.big.low * big + site.small.low * small
    return low, site.big.high * big + site.small.high * small


def levels(site: Site, big: bool, small: bool, step: float) -> Array:
    """Sums of power to try."""
    low, high = span(site, big, small)
    count = max(int(np.ceil((high - low) / step - EPS)), 0) + 1
    return np.linspace(low, high, count)


def share(site: Site, big: bool, small: bool, power: Array) -> tuple[Array, Array]:
    """Divides a sum of power: BIG, whose kWh is cheaper, takes all it can."""
    if not big:
        return np.zeros_like(power), power
    to_big = np.minimum(power - site.small.low * small, site.big.high)
    return to_big, power - to_big


def hour(
    site: Site, big: bool, small: bool, energy: Array, power: Array, load: float, sun: float
) -> Outcome:
    """One hour as the rules state it, automatic raise included; starts are not priced here."""
    net = power + (sun - load)
    room = np.minimum(site.rate, (site.full - energy) / site.store)
    charged = np.clip(net, 0.0, room)
    need = np.maximum(-net, 0.0)
    spare = np.minimum(site.rate, np.maximum(energy - site.floor, 0.0))
    lift = np.clip(need - spare, 0.0, span(site, big, small)[1] - power)
    need = need - lift
    given = np.minimum(need, np.minimum(site.rate, energy))
    unserved = need - given
    after = energy + site.store * charged - given
    missed = np.maximum(site.floor - after, 0.0) + unserved
    to_big, to_small = share(site, big, small, power + lift)
    cost = to_big * site.big.kwh + to_small * site.small.kwh + site.wear * (charged + given)
    cost = cost + site.big.hour * big + site.small.hour * small + UNSERVED_CT * unserved
    return Outcome(after, cost + MISS_KWH_CT * missed + MISS_CT * (missed > EPS))


def split(site: Site, time: int, days: Days) -> dict[tuple[float, float], Days]:
    """The days by what this hour shows."""
    parts: dict[tuple[float, float], Days] = {}
    for day in days:
        seen = (site.load[time][day], site.sun[time][day])
        parts[seen] = (*parts.get(seen, ()), day)
    return parts


class Plan:
    """Expected cost to go, by hour, belief, status of both generators and battery energy."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.grid = np.linspace(site.floor, site.full, CELLS + 1)
        self.values: dict[tuple[int, Days], Array] = {}

    def value(self, time: int, days: Days) -> Array:
        """Cost to go on the grid: an array by BIG's status, SMALL's status and energy."""
        if time == len(self.site.load):
            return self.last()
        if (time, days) not in self.values:
            self.values[time, days] = self.induct(time, days)
        return self.values[time, days]

    def last(self) -> Array:
        """The price of the energy left."""
        site = self.site
        gain = self.grid - site.begin
        price = np.where(gain < 0, -site.less * gain, -site.more * gain)
        shape = (site.big.stay + 1, site.small.stay + 1, len(self.grid))
        return np.broadcast_to(price, shape)

    def ahead(
        self, time: int, days: Days, on: tuple[bool, bool], energy: Array, power: Array, keep: Any
    ) -> Array:
        """Expected cost from this hour on, if power is told; `keep` picks the next statuses."""
        site = self.site
        whole = sum(site.chance[day] for day in days)
        total = np.zeros(())
        for (load, sun), part in split(site, time, days).items():
            end = hour(site, *on, energy, power, load, sun)
            place = np.clip((end.energy - site.floor) / (site.full - site.floor), 0.0, 1.0) * CELLS
            cell = np.minimum(place.astype(np.intp), CELLS - 1)
            after = self.value(time + 1, part)[keep]
            slope = np.diff(after, axis=-1)
            go = end.cost + np.take(after, cell, -1) + np.take(slope, cell, -1) * (place - cell)
            total = total + go * (sum(site.chance[day] for day in part) / whole)
        return np.asarray(total)

    def induct(self, time: int, days: Days) -> Array:
        """One step of backward induction."""
        big, small = self.site.big, self.site.small
        both = ((one, other) for one in (False, True) for other in (False, True))
        ran = {on: self.running(time, days, on) for on in both}
        value = np.full((big.stay + 1, small.stay + 1, len(self.grid)), np.inf)
        for status_big, status_small in np.ndindex(big.stay + 1, small.stay + 1):
            here = value[status_big, status_small]
            moves = product(big.moves(status_big), small.moves(status_small))
            for (on_big, next_big, price_big), (on_small, next_small, price_small) in moves:
                go = ran[on_big, on_small][next_big - on_big, next_small - on_small]
                np.minimum(here, go + price_big + price_small, out=here)
        return value

    def running(self, time: int, days: Days, on: tuple[bool, bool]) -> Array:
        """Cost to go on the grid with these generators on, by their next statuses."""
        power = levels(self.site, *on, LEVEL_KW)[None, :]
        big, small = (slice(1, None) if runs else slice(0, 1) for runs in on)
        every = self.ahead(time, days, on, self.grid[:, None], power, (big, small))
        return np.asarray(every.min(axis=-1))

    def command(
        self, time: int, days: Days, energy: float, status: tuple[int, int]
    ) -> tuple[float, float]:
        """The best command, searched finely from the exact energy."""
        site = self.site
        best, told = np.inf, (0.0, 0.0)
        moves = product(site.big.moves(status[0]), site.small.moves(status[1]))
        for (big, next_big, price_big), (small, next_small, price_small) in moves:
            power = levels(site, big, small, FINE_KW)
            keep = (next_big, next_small)
            every = self.ahead(time, days, (big, small), np.array(energy), power, keep)
            pick = int(every.argmin())
            price = float(every[pick]) + price_big + price_small
            if price < best - EPS:
                best = price
                to_big, to_small = share(site, big, small, power)
                told = (float(to_big[pick]), float(to_small[pick]))
        return told


@lru_cache(maxsize=2)
def plan_of(text: str) -> Plan:
    """The plan for a Task's first text."""
    return Plan(read_site(text))


def read_status(name: str, text: str) -> int:
    """0 where the generator is off, else 1 + the hours that it must still run."""
    found = re.search(rf"{name} (is off|runs(?: and must for (\d+) more)?)[^.]*\.?", text)
    if found is None or found[1] == "is off":
        return 0
    return 1 + int(found[2] or 0)


def now_line(text: str) -> str:
    """The sentence that says where the site stands."""
    return text[text.rfind("Now it is") :]


def told_powers(answer: str) -> tuple[float, float]:
    """The powers that one of our replies told."""
    found = [re.search(rf"{name} ([\d.]+)", answer) for name in ("BIG", "SMALL")]
    big, small = (float(match[1]) if match else 0.0 for match in found)
    return big, small


def track(site: Site, texts: list[str], replies: list[str]) -> tuple[Days, float]:
    """The days that fit, and the battery's exact energy."""
    days: Days = tuple(range(len(site.chance)))
    energy = site.begin
    for time, (text, answer) in enumerate(zip(texts[1:], replies, strict=False)):
        load, sun = numbers(r"load was # and sun # kW", text)
        days = split(site, time, days).get((load, sun), days)
        here = now_line(text)
        on = (read_status("BIG", here) > 0, read_status("SMALL", here) > 0)
        told = sum(told_powers(answer))
        low, high = span(site, *on)
        power = np.array(min(max(told, low), high))
        energy = float(hour(site, *on, np.array(energy), power, load, sun).energy)
        (shown,) = numbers(r"the battery holds # kWh", here)
        energy = min(max(energy, shown), shown + 0.1)
    return days, energy


def reply(texts: list[str], replies: list[str]) -> str:
    """The command for the hour that begins."""
    plan = plan_of(texts[0])
    days, energy = track(plan.site, texts, replies)
    here = now_line(texts[-1])
    status = (read_status("BIG", here), read_status("SMALL", here))
    big, small = plan.command(len(texts) - 1, days, energy, status)
    return f"BIG {big:.2f}\nSMALL {small:.2f}"
