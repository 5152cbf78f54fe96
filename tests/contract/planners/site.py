"""An operator of an off-grid site that knows nothing but the full prompt: it reads, plans, counts.

Its plan is a recursion over what has been seen so far, on a fine grid of energies and a coarse one
of powers; it shares nothing with the world's.
"""

import copy
import itertools
import math
import re
from collections.abc import Callable
from functools import cached_property

import numpy as np
import numpy.typing as npt

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NEVER = 1e6
_CELLS = 101

Floats = npt.NDArray[np.float64]
Runs = tuple[int, int]


class Site:
    """One site as its texts show it. Money is in cents.

    Attributes:
        t: number of the hour.
        cost: cents so far.
        missed: by how much the limit was missed, by hour where it was.
    """

    def __init__(self, text: str) -> None:
        def find(pattern: str) -> float:
            (found,) = {float(number) for number in re.findall(pattern, text)}
            return found

        self.floor = find(rf"battery must hold at least {_NUMBER} kWh")
        self.capacity = find(rf"battery holds at most {_NUMBER} kWh")
        self.power = find(rf"takes or gives at most {_NUMBER} kW")
        self.eta = find(rf"it stores {_NUMBER} kWh")
        self.wear = find(rf"costs {_NUMBER} ct of wear")
        self.unserved = find(rf"costs {_NUMBER} ct per kWh\. With both")
        self.less = find(rf"each kWh less than at the start costs {_NUMBER} ct")
        self.more = find(rf"each kWh more pays {_NUMBER} ct")
        self.energy = self.start = find(rf"Now it is \S+ the battery holds {_NUMBER} kWh")
        unit = (
            rf"gives 0 kW or from {_NUMBER} to {_NUMBER} kW.+? runs costs {_NUMBER} ct, each kWh "
            rf"{_NUMBER} ct more, each start {_NUMBER} ct\..+?at least (\d+) hours"
        )
        self.units = [tuple(map(float, found)) for found in re.findall(unit, text)]
        assert len(self.units) == 2
        self.chance = [float(p) for p in re.findall(rf"[A-F] {_NUMBER}%", text)]
        rows = re.findall(r"^\d+h: (A load .+)$", text, re.M)
        self.rows = [
            [(float(a), float(b)) for a, b in re.findall(rf"load {_NUMBER} sun {_NUMBER}", row)]
            for row in rows
        ]
        self.steps = len(self.rows)
        assert abs(sum(self.chance) - 100.0) < 1e-6
        assert {len(row) for row in self.rows} == {len(self.chance)}
        rule = (
            r"about \S+ on average over the days for always running BIG, as near as it can to the "
            r"mean load less sun of the days that may still come, and SMALL, at its least, in each "
            r"hour in which the largest load less sun of these days exceeds what BIG and the "
            rf"battery, down to {_NUMBER} kWh, can give\."
        )
        assert find(rule) == self.floor
        self.runs: Runs = (0, 0)
        self.days = tuple(range(len(self.chance)))
        self.t, self.cost, self.missed = 0, 0.0, list[float]()
        self.told = dict[str, float]()
        self.known: dict[tuple[int, tuple[int, ...]], dict[Runs, Floats]] = {}

    def look(self, text: str) -> None:
        """Settle the last hour by what a text says of it, and compare the books with the rest."""
        if self.told:
            (found,) = re.findall(rf"In the last hour load was {_NUMBER} and sun {_NUMBER}", text)
            now = tuple(map(float, found))
            self.days = tuple(d for d in self.days if self.rows[self.t][d] == now)
            assert self.days, "the day is none of those listed"
            ran = self.settle(*now)
            for device, power, told in zip(("BIG", "SMALL"), ran, self.told.values(), strict=True):
                said = re.findall(rf"{device} ran at {_NUMBER} kW", text)
                assert bool(said) == (abs(power - told) > 0.005)
                assert not said or abs(float(said[0]) - power) <= 0.005
            self.t += 1
        shown = float(re.findall(rf"the battery holds {_NUMBER} kWh", text)[-1])
        assert abs(shown - math.floor(self.energy * 100.0 + 1e-6) / 100.0) < 1e-9
        for device, hours in zip(("BIG", "SMALL"), self.runs, strict=True):
            (state,) = re.findall(
                rf"{device} (is off|runs(?: and must for \d+ more hours?)?)[,.]", text
            )
            assert state == (
                "is off"
                if not hours
                else "runs"
                if hours == 1
                else f"runs and must for {hours - 1} more hour{'s' if hours > 2 else ''}"
            )

    def settle(self, load: float, sun: float) -> list[float]:
        """Keep the books of an hour as the prompt says they are kept; return what the units did."""
        ran, runs = [], []
        for told, hours, (least, most, hourly, _, start, length) in zip(
            self.told.values(), self.runs, self.units, strict=True
        ):
            on = hours > 1 or told >= least - 1e-6
            ran.append(min(max(told, least), most) if on else 0.0)
            runs.append(0 if not on else max(hours - 1, 1) if hours else int(length))
            self.cost += hourly * on + start * (on and not hours)
        spare = min(self.power, max(self.energy - self.floor, 0.0))
        lacking = max(load - sun - sum(ran) - spare, 0.0)
        for n, (_, most, *_rest) in enumerate(self.units):
            if runs[n]:
                ran[n], lacking = (
                    ran[n] + min(most - ran[n], lacking),
                    lacking - min(most - ran[n], lacking),
                )
        self.cost += sum(kw * unit[3] for kw, unit in zip(ran, self.units, strict=True))
        left = sun + sum(ran) - load
        if left >= 0.0:
            moved = min(left, self.power, (self.capacity - self.energy) / self.eta)
            self.energy += self.eta * moved
        else:
            moved = min(-left, self.power, self.energy)
            self.energy -= moved
            dark = -left - moved
            self.cost += self.unserved * dark
            self.missed += [dark] if dark > 1e-6 else []
        self.cost += self.wear * moved
        short = self.floor - self.energy
        self.missed += [short] if short > 1e-6 else []
        self.runs = (runs[0], runs[1])
        return ran

    def close(self) -> None:
        """Settle the last hour, of which the last text says nothing more, and the battery."""
        rows = {self.rows[self.t][d] for d in self.days}
        assert len(rows) == 1, "the last hour differs between days that could not be told apart"
        self.settle(*rows.pop())
        self.cost += self.end()

    def end(self) -> float:
        """Return the cents that are charged at the end for what the battery holds."""
        extra = self.energy - self.start
        return -self.more * extra if extra > 0.0 else -self.less * extra

    def advance(self, done: dict[str, float]) -> None:
        """Note what was told; what came of it the next text says."""
        self.told = done

    def named_rule(self) -> dict[str, float]:
        """Return what the rule tells that the text names beside the best plan."""
        (least, most, *_), (small, *_) = self.units
        chance = [self.chance[day] for day in self.days]
        needs = [load - sun for load, sun in (self.rows[self.t][day] for day in self.days)]
        mean = float(np.average(needs, weights=chance))
        battery = min(self.power, self.energy - self.floor)
        lacks = max(needs) > most + battery
        return {"BIG": min(max(mean, least), most), "SMALL": small if lacks else 0.0}

    def scale(self) -> float:
        """Return the cents that the rule costs more than the plan, on average over the days."""
        each = [self._day(day, Site.named_rule) - self._day(day, Site.plan) for day in self.days]
        return float(np.average(each, weights=self.chance))

    def _day(self, day: int, decide: Callable[["Site"], dict[str, float]]) -> float:
        """Return the cents of a listed day from its start."""
        site = copy.copy(self)
        site.missed = []
        for now in [row[day] for row in self.rows]:
            site.told = decide(site)
            site.days = tuple(d for d in site.days if site.rows[site.t][d] == now)
            site.settle(*now)
            site.t += 1
        assert not site.missed
        return site.cost + site.end()

    # The plan

    @cached_property
    def grid(self) -> Floats:
        return np.linspace(self.floor, self.capacity, _CELLS)

    def plan(self) -> dict[str, float]:
        """Return the powers of least expected cents."""
        found = []
        for after, start in self.follow(self.runs):
            for powers, cents in self.options(self.t, self.days, after, np.array([self.energy])):
                found.append((float(cents[0]) + start, powers))
        _, best = min(found)
        return dict(zip(("BIG", "SMALL"), best, strict=True))

    def follow(self, runs: Runs) -> list[tuple[Runs, float]]:
        """Runs that may follow, with cents of starts."""
        each = []
        for hours, (*_, start, length) in zip(runs, self.units, strict=True):
            if hours > 1:
                each.append([(hours - 1, 0.0)])
            elif hours:
                each.append([(0, 0.0), (1, 0.0)])
            else:
                each.append([(0, 0.0), (int(length), start)])
        return [((a, b), x + y) for (a, x), (b, y) in itertools.product(*each)]

    def later(self, t: int, days: tuple[int, ...]) -> dict[Runs, Floats]:
        """Expected cents from an hour on, by runs and energy of the grid."""
        key = (t, days)
        if key not in self.known:
            lengths = [range(int(unit[5]) + 1) for unit in self.units]
            extra = self.grid - self.start
            end = np.where(extra > 0.0, -self.more * extra, -self.less * extra)
            every = [(a, b) for a, b in itertools.product(*lengths)]
            if t == self.steps:
                self.known[key] = dict.fromkeys(every, end)
            else:
                best = {
                    after: np.min([c for _, c in self.options(t, days, after, self.grid)], axis=0)
                    for after in every
                }
                self.known[key] = {
                    runs: np.min([best[after] + x for after, x in self.follow(runs)], axis=0)
                    for runs in every
                }
        return self.known[key]

    def options(
        self, t: int, days: tuple[int, ...], after: Runs, energy: Floats
    ) -> list[tuple[tuple[float, float], Floats]]:
        """Powers that may be told, and the expected cents of each from an hour on."""
        (low, high, *_), (least, most, *_) = self.units
        bigs = [*np.arange(math.ceil(4 * low) / 4, high, 0.25), low, high] if after[0] else [0.0]
        smalls = [least, (least + most) / 2, most] if after[1] else [0.0]
        powers = [(round(a, 2), round(b, 2)) for a, b in itertools.product(bigs, smalls)]
        groups: dict[tuple[float, float], list[int]] = {}
        for day in days:
            groups.setdefault(self.rows[t][day], []).append(day)
        total = sum(self.chance[day] for day in days)
        told = np.array(powers)[:, :, None]
        cents = np.zeros((len(powers), len(energy)))
        for (load, sun), group in groups.items():
            share = sum(self.chance[day] for day in group) / total
            spare = np.minimum(self.power, np.maximum(energy - self.floor, 0.0))
            lacking = np.maximum(load - sun - told.sum(axis=1) - spare, 0.0)
            more = np.minimum(lacking, (high if after[0] else 0.0) - told[:, 0])
            other = np.minimum(lacking - more, (most if after[1] else 0.0) - told[:, 1])
            left = sun - load + told.sum(axis=1) + more + other
            takes = np.clip(left, 0.0, np.minimum(self.power, (self.capacity - energy) / self.eta))
            gives = np.minimum(np.maximum(-left, 0.0), np.minimum(self.power, energy))
            stored = energy + self.eta * takes - gives
            spent = self.units[0][3] * (told[:, 0] + more) + self.units[1][3] * (told[:, 1] + other)
            spent = (
                spent
                + sum(unit[2] for unit, on in zip(self.units, after, strict=True) if on)
                + self.wear * (takes + gives)
            )
            broken = np.maximum(-left - gives, 0.0) + np.maximum(self.floor - stored, 0.0)
            ahead = self.later(t + 1, tuple(group))[after]
            cents += share * (spent + _NEVER * broken + np.interp(stored, self.grid, ahead))
        return list(zip(powers, cents, strict=True))
