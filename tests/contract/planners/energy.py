"""An operator that knows nothing but the full prompt: it reads the home, keeps books and plans.

What each text shows must follow from the texts before it and the replies, to the last digit. Plans
are those of the world's program, for the home that the texts describe.
"""

import math
import re

from tests.contract.planners.site import Site
from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Car, Microgrid
from tokengym.envs.energy.oracle import UNSAFE, plan
from tokengym.envs.energy.step_result import State, rounded_up

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_GUARD = 0.1
"""Degrees above the least that it plans for, as forecasts of the weather err."""
_EMPTY = ("chance", "load_forecast", "pv_forecast", "load_updates", "pv_updates", "before")
"""Fields of a plant that planning does not read."""


class Operator:
    """Answers one episode, text by text. `reply` raises where a text contradicts the books."""

    def __init__(self) -> None:
        self.plant: _Home | Site | None = None

    def reply(self, text: str) -> str:
        """Read a Turn and return a command for each device."""
        if self.plant is None:
            self.plant = read(text)
        self.plant.look(text)
        # In the digits that the prompt asks for, and the battery rather fuller.
        done = {
            device: rounded_up(power) if device == "BATTERY" else round(power, 2)
            for device, power in self.plant.plan().items()
        }
        self.plant.advance(done)
        return "\n".join(f"{device} {power:.2f}" for device, power in done.items())

    def end(self, text: str) -> None:
        """Read the last Turn and compare the accounts."""
        assert self.plant is not None
        self.plant.close()
        total = find(rf"The total cost is {_NUMBER} ct", text)
        assert abs(total - self.plant.cost) <= 0.006, (total, self.plant.cost)
        assert ("The limit was always kept." in text) == (not self.plant.missed)


def read(text: str) -> "_Home | Site":
    """Read an opening; returns who keeps the books of its plant."""
    return (Site if "BIG" in text else _Home)(text)


class _Home:
    """A home: its battery, and maybe a car and a house.

    Attributes:
        t: number of the step.
        cost: cents so far.
        missed: by how much the limit was missed, by step.
    """

    def __init__(self, text: str) -> None:
        self.dt = 1.0 if "Every hour" in text else find(r"steps of (\d+) minutes", text) / 60.0
        self.table = [
            {name: float(value) for name, value in re.findall(rf"(\w+) {_NUMBER}", line)}
            for line in re.findall(rf"^\d+(?:h|:\d\d): (.+ {_NUMBER})$", text, re.M)
            for line in line[:1]
        ]
        self.steps = int(find(r"for (\d+) (?:hours|steps)", text))
        assert len(self.table) == self.steps
        self.lost, self.won = end_prices("kWh", text)
        self.slack, self.slack_cost = pair(
            rf"miss of up to {_NUMBER} (?:kWh|degrees) does not count; it only costs {_NUMBER} ct",
            text,
        )
        self.t, self.cost = -1, 0.0
        self.missed: list[float] = []
        self.ups: list[int] = []
        self.indoor = 0.0
        self._read_battery(text)
        self._read_car(text)
        self.house = "HEAT runs" in text
        if self.house:
            self._read_house(text)
        # What the most that was bought in an hour costs per kW, and what it is so far.
        self.peak_cost = find(rf"the most that is bought in any hour costs {_NUMBER} ct", text, 0.0)
        self.peak = 0.0

    def miss(self, missed: float) -> None:
        """Pay for what a limit is missed by, and note what counts."""
        self.cost += self.slack_cost * min(max(missed, 0.0), self.slack)
        self.missed += [missed - self.slack] if missed - self.slack > 1e-6 else []

    def _read_battery(self, text: str) -> None:
        self.capacity = find(rf"battery holds at most {_NUMBER} kWh", text)
        self.power = find(rf"takes or gives at most {_NUMBER} kW", text)
        self.eta = find(rf"it stores {_NUMBER} kWh", text)
        assert self.eta == find(rf"loses 1/{_NUMBER} kWh", text)
        self.wear = find(rf"costs {_NUMBER} ct of wear", text)
        self.imports = find(rf"bought from the grid, at most {_NUMBER} kW", text)
        self.exports = find(rf"at most {_NUMBER} kW; sun beyond", text)
        assert self.exports == find(rf"grid take, {_NUMBER} kW of it even while sun is lost", text)
        self.sale = find(rf"is sold for {_NUMBER} ct per kWh", text, math.nan)
        self.unserved = find(rf"not served costs {_NUMBER} ct", text, 1000.0)
        self.critical = find(rf"at least {_NUMBER}% of the load must", text, 100.0) / 100.0
        self.regain = find(rf"comes back by {_NUMBER} kWh each", text, math.inf)
        self.burns = "never both" in text
        self.energy = self.start = find(rf"Now it is \S+ the battery holds {_NUMBER} kWh", text)
        self.most_reserve = math.inf
        self.schedule = [row.get("reserve", 0.0) for row in self.table]

    def _read_car(self, text: str) -> None:
        self.car = 0.0
        self.ev = find(rf"charges the car: from 0 to {_NUMBER} kW", text, 0.0)
        if self.ev:
            self.need, self.takes = pair(rf"needs {_NUMBER} kWh and takes at most {_NUMBER}", text)
            self.late = find(rf"when it leaves costs {_NUMBER} ct", text)
            times = re.findall(r"^(\d+(?:h|:\d\d)): load", text, re.M)
            home, away = re.findall(r"at home from (\S+) to (\S+)\. It", text)[0]
            self.away = (times.index(away) - 1) % len(times) + 1
            self.home = range(times.index(home), self.away)

    def _read_house(self, text: str) -> None:
        assert self.imports == find(
            rf"on top of the sun and the grid's {_NUMBER} kW for load, heat pump and car", text
        )
        self.heats = find(rf"HEAT runs the heat pump: from 0 to {_NUMBER} kW", text)
        self.high = find(rf"and {_NUMBER} degrees\.", text)
        rise = rf"\(COP \* HEAT \+ {_NUMBER} \+ {_NUMBER} \* sun - {_NUMBER} \* "
        rise += rf"\(indoor - outside\)\) / {_NUMBER} degrees"
        self.gain, self.window, self.loss, self.mass = map(float, re.findall(rise, text)[0])
        self.cop = pair(rf"COP = {_NUMBER} \+ {_NUMBER} \* outside, but at least {_NUMBER}", text)
        self.indoor = self.warm = find(rf"indoor {_NUMBER},", text)
        self.colder, self.warmer = end_prices("degree", text)

    def rise(self, indoor: float, heat: float, row: dict[str, float]) -> float:
        """Degrees that a step adds."""
        cop = max(self.cop[0] + self.cop[1] * row["outside"], self.cop[2])
        flow = cop * heat + self.gain + self.window * row["sun"]
        return self.dt * (flow - self.loss * (indoor - row["outside"])) / self.mass

    def look(self, text: str) -> None:
        """Take over what a text says of the present step and the next ones."""
        self.t += 1
        now = re.findall(r"Now it is (\S+): (.+?)\.(?:\s|$)", text)[-1][1]
        self.table[self.t] |= {k: float(v) for k, v in re.findall(rf"(\w+) {_NUMBER}(?:,|$)", now)}
        fresh = re.findall(r"New forecasts: (.+)\.", text)
        for ahead, part in enumerate(fresh[-1].split("; ") if fresh else (), 1):
            numbers = {k: float(v) for k, v in re.findall(rf"(\w+) {_NUMBER}(?:,|$)", part)}
            self.table[self.t + ahead] |= numbers
        shown = re.findall(rf"the battery holds {_NUMBER} kWh", text)[-1]
        assert abs(float(shown) - floored(self.energy)) < 1e-9, (shown, self.energy)
        car = re.findall(rf"the car {_NUMBER} kWh", text)
        assert bool(car) == bool(self.ev and self.t in self.home)
        assert not car or abs(float(car[-1]) - floored(self.car)) < 1e-9
        self.up = "The grid is down" not in text
        self.ups.append(int(self.up))
        self.most_reserve = self.most_reserve + self.regain if self.up else 0.0
        reserve = min(self.schedule[self.t], self.most_reserve)
        row = self.table[self.t]
        assert abs(row.get("reserve", 0.0) - reserve) < 1e-9
        if self.house:
            assert abs(row["indoor"] - floored(self.indoor)) < 1e-9
            assert abs(row["peak"] - floored(self.peak)) < 1e-9

    def sale_at(self, row: dict[str, float]) -> float:
        return row.get("sale", self.sale)

    def plan(self) -> dict[str, float]:
        """Plan to the end on what is known, and return the first commands."""
        seen = self.seen().guarded(self.t, _GUARD)
        state = State(self.energy, self.car, (), self.indoor, self.peak)
        planned = plan(seen, self.t, state, UNSAFE)
        assert planned is not None
        return dict(zip(seen.devices, planned.commands[0], strict=True))

    def seen(self) -> Microgrid:
        """Return the home as it is known, with forecasts of what is to come."""

        def column(name: str, share: float = 1.0) -> tuple[float, ...]:
            return tuple(share * row.get(name, 0.0) for row in self.table)

        house = None
        if self.house:
            pump = *self.cop[:2], self.heats, self.warm
            walls, ends = (self.gain, self.window, self.high), (self.colder, self.warmer)
            house = House(self.mass, self.loss, *pump, *walls, *(end / 100 for end in ends))
        car = (
            Car(self.home.start, self.away, self.need, self.ev, self.late / 100)
            if self.ev
            else None
        )
        return Microgrid(
            start=0,
            dt=self.dt,
            power=self.power,
            capacity=self.capacity,
            efficiency=self.eta,
            energy=self.start,
            wear=self.wear / 100,
            price_of_missing=self.lost / 100,
            price_of_extra=self.won / 100,
            import_cap=self.imports,
            export_cap=self.exports,
            regain=self.regain,
            critical=self.critical,
            load=column("load"),
            pv=column("sun"),
            outside=column("outside") if house else (),
            low=column("low") if house else (),
            **dict.fromkeys(_EMPTY, ()),
            price=column("price", 0.01),
            resale=tuple(self.sale_at(row) / 100 for row in self.table),
            schedule=tuple(self.schedule),
            up=(*self.ups, *[1] * (self.steps - len(self.ups))),
            outage_hours=0.0,
            demand_charge=self.peak_cost / 100,
            car=car,
            house=house,
        )

    def advance(self, done: dict[str, float]) -> None:
        """Keep the books as the prompt says they are kept."""
        dt, row = self.dt, self.table[self.t]
        load, wanted = row["load"], done["BATTERY"]
        buys, sells = (self.imports, self.exports) if self.up else (0.0, 0.0)
        kept = self.energy
        gives = min(max(-wanted, 0.0), self.power, kept * self.eta / dt)
        given = row["sun"]
        heat, ev = 0.0, 0.0
        if self.house:
            heat = max(min(done["HEAT"], self.heats, buys + given + gives - load), 0.0)
            self.indoor += self.rise(self.indoor, heat, row)
        if self.ev and self.t in self.home:
            free = min(buys + given + gives - load - heat, (self.takes - self.car) / dt)
            ev = max(min(done["EV"], free, self.ev), 0.0)
        gives = min(gives, load + heat + ev + sells)
        room = (self.capacity - kept) / (self.eta * dt)
        takes = max(min(wanted, self.power, room, buys + given - load - heat - ev), 0.0)
        self.energy = min(max(kept + dt * (takes * self.eta - gives / self.eta), 0), self.capacity)
        self.car += dt * ev
        need = load + heat + ev + takes - gives - given
        if self.burns:
            # Of all ways to leave sun unused, the cheapest.
            low, high = max(need, -sells), min(need + given, buys)
            ways = [low, high, *([0.0] if low < 0.0 < high else [])]
            price, sale = row["price"], self.sale_at(row)
            need = need if low >= high else min(ways, key=lambda g: g * (price if g > 0 else sale))
        bought, sold = min(max(need, 0.0), buys), min(max(-need, 0.0), sells)
        unserved = max(need - bought, 0.0)
        self.cost += dt * (row["price"] * bought - self.sale_at(row) * sold)
        self.cost += dt * self.wear * (takes + gives)
        self.cost += dt * self.unserved * unserved
        self.cost += self.peak_cost * max(bought - self.peak, 0.0)
        self.peak = max(self.peak, bought)
        if self.house:
            self.miss(max(row["low"] - self.indoor, self.indoor - self.high))
        else:
            self.miss(row["reserve"] - self.energy)
        dark = dt * (unserved - (1 - self.critical) * load)
        self.missed += [dark] if dark > 1e-6 else []
        if self.ev and self.t == self.away - 1 and self.t in self.home:
            self.cost += self.late * max(self.need - self.car, 0.0)

    def close(self) -> None:
        more = self.energy - self.start
        self.cost -= self.won * more if more > 0 else self.lost * more
        if self.house:
            more = self.indoor - self.warm
            self.cost -= self.warmer * more if more > 0 else self.colder * more


def end_prices(unit: str, text: str) -> tuple[float, float]:
    """Return what each unit less at the end costs, and what each more pays."""
    less = find(rf"ach {unit} less than at the start costs {_NUMBER} ct", text)
    return less, find(rf"each {unit} more pays {_NUMBER} ct", text)


def find(pattern: str, text: str, default: float | None = None) -> float:
    """Return the one number that a pattern finds."""
    found = {float(number) for number in re.findall(pattern, text)}
    if not found and default is not None:
        return default
    (number,) = found
    return number


def pair(pattern: str, text: str) -> tuple[float, ...]:
    """Return the numbers that a pattern finds, none if it does not match."""
    found = re.search(pattern, text)
    return tuple(map(float, found.groups())) if found else ()


def floored(value: float) -> float:
    return math.floor(value * 100.0 + 1e-6) / 100.0
