"""An operator that knows nothing but the full prompt: it parses, keeps its own books and plans.

What each text shows must follow from the texts before it and the replies, to the last digit.
"""

import math
import re

from tests.contract.planners.program import Program
from tests.contract.planners.site import Site

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_UNSAFE = 2000.0
"""Cents that the planner would pay to keep the limit by one kWh or degree more."""
_TIE = 1e-4


class Operator:
    """Answers one episode, text by text. `reply` raises where a text contradicts the books."""

    def __init__(self) -> None:
        self.plant: _Home | Site | None = None

    def reply(self, text: str) -> str:
        """Read a Turn and return a command for each device."""
        if self.plant is None:
            self.plant = read(text)
        self.plant.look(text)
        # To the nearest of the digits that the prompt asks for: nothing is kept in hand for it.
        done = {device: round(power, 2) for device, power in self.plant.plan().items()}
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
        program, dt = Program(), self.dt
        program.add("higher", self.peak_cost)
        for t in range(self.t, self.steps):
            row = self.table[t]
            up = self.up or t > self.t
            reserve = min(self.schedule[t], self.most_reserve + self.regain * (t - self.t))
            # Of plans that cost the same, the one that charges later: it knows more by then.
            waits = _TIE * (self.steps - t)
            program.add(f"c{t}", dt * self.wear + waits, high=self.power)
            program.add(f"d{t}", dt * self.wear, high=self.power)
            program.add(f"e{t}", high=self.capacity)
            program.add(f"short{t}", _UNSAFE)
            program.add(f"buy{t}", dt * row["price"], high=self.imports * up)
            program.add(f"sell{t}", -dt * self.sale_at(row), high=self.exports * up)
            program.add(f"lost{t}")
            program.add(f"out{t}", dt * self.unserved, high=(1 - self.critical) * row["load"])
            program.add(
                f"dark{t}", dt * (self.unserved + _UNSAFE), high=self.critical * row["load"]
            )
            if self.burns:
                for one, other, limits in (
                    ("c", "d", (self.power, self.power)),
                    ("buy", "sell", (self.imports, self.exports)),
                ):
                    name = f"{one}_not_{other}{t}"
                    program.add(name, high=1.0, whole=1)
                    program.row(-math.inf, 0.0, **{f"{one}{t}": 1.0, name: -limits[0]})
                    program.row(-math.inf, limits[1], **{f"{other}{t}": 1.0, name: limits[1]})
            change = {f"c{t}": -dt * self.eta, f"d{t}": dt / self.eta}
            if t == self.t:
                program.row(self.energy, self.energy, **{f"e{t}": 1.0}, **change)
            else:
                program.row(0, 0, **{f"e{t}": 1.0, f"e{t - 1}": -1.0}, **change)
            program.row(reserve, math.inf, **{f"e{t}": 1.0, f"short{t}": 1.0})
            program.row(-math.inf, self.peak, **{f"buy{t}": 1.0, "higher": -1.0})
            balance = {f"buy{t}": 1.0, f"out{t}": 1.0, f"dark{t}": 1.0, f"d{t}": 1.0}
            balance |= {f"c{t}": -1.0, f"sell{t}": -1.0, f"lost{t}": -1.0}
            if self.ev and t in self.home:
                program.add(f"v{t}", high=self.ev)
                balance[f"v{t}"] = -1.0
            if self.house:
                self._plan_heat(program, t, row)
                balance[f"p{t}"] = -1.0
            program.row(-math.inf, row["sun"], **{f"lost{t}": 1.0})
            net = row["load"] - row["sun"]
            program.row(net, net, **balance)
        last = f"e{self.steps - 1}"
        program.add("less", self.lost)
        program.add("more", -self.won)
        program.row(self.start, self.start, **{last: 1.0, "less": 1.0, "more": -1.0})
        if self.house:
            program.add("colder", self.colder)
            program.add("warmer", -self.warmer)
            ends = {f"i{self.steps - 1}": 1.0, "colder": 1.0, "warmer": -1.0}
            program.row(self.warm, self.warm, **ends)
        if self.ev and self.t < self.home.stop:
            terms = {f"v{t}": dt for t in self.home if t >= self.t}
            program.add("late", self.late)
            program.row(self.need - self.car, math.inf, late=1.0, **terms)
            if terms:
                program.row(-math.inf, self.takes - self.car, **terms)
        best, t = program.solve(), self.t
        commands = {"BATTERY": round(best[f"c{t}"] - best[f"d{t}"], 6)}
        if self.ev:
            commands["EV"] = round(best.get(f"v{t}", 0.0), 6)
        if self.house:
            commands["HEAT"] = round(best[f"p{t}"], 6)
        return commands

    def _plan_heat(self, program: Program, t: int, row: dict[str, float]) -> None:
        program.add(f"p{t}", high=self.heats)
        program.add(f"i{t}", low=-math.inf)
        program.add(f"cold{t}", _UNSAFE)
        program.add(f"hot{t}", _UNSAFE)
        program.row(row["low"], math.inf, **{f"i{t}": 1.0, f"cold{t}": 1.0})
        program.row(-math.inf, self.high, **{f"i{t}": 1.0, f"hot{t}": -1.0})
        drift = self.rise(0.0, 0.0, row)
        each = self.rise(0.0, 1.0, row) - drift
        kept = self.dt * self.loss / self.mass - 1.0
        if t == self.t:
            drift -= kept * self.indoor
            program.row(drift, drift, **{f"i{t}": 1.0, f"p{t}": -each})
        else:
            program.row(drift, drift, **{f"i{t}": 1.0, f"p{t}": -each, f"i{t - 1}": kept})

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
