"""A home microgrid: battery, sun, tariff, grid with caps and outages, optional car and house.

Units: kW, kWh, hours, money. With Δt the step, c and d the charging and discharging power:

    E' = E + Δt (η c - d / η),  0 <= c, d <= P,  0 <= E' <= capacity
    imp - exp = load - pv + heat + ev + curtailed + c - d - unserved
    imp <= import cap while the grid is up, else 0; exp likewise
    money = Δt (p imp - x exp + κ (c + d) + VOLL unserved) + price of missing E'
            + demand charge * the highest imp of all steps

One meter: a step buys or sells, never both. Sun is curtailed where that is cheapest, the demand
charge aside, which is only where nothing more can be sold or a price is negative. `house` has the
heat balance.

Parameters follow CityLearn (battery, sun, tariff) and pymgrid (cycle cost, lost load).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

from tokengym.envs.energy.house import House
from tokengym.envs.energy.step_result import (
    TOLERANCE,
    Commands,
    State,
    StepResult,
    StoragePlant,
    latest,
    settled,
)

LOST_LOAD = 10.0
"""Money per kWh of load not served (pymgrid)."""
_DIGITS = 6


class Car(NamedTuple):
    """A car that charges at home once.

    Attributes:
        arrives: the step at whose beginning it comes.
        departs: the step at whose beginning it leaves.
        need: kWh that it can take.
        power: most kW.
        price_of_missing: money per kWh of the need missing at departure.
    """

    arrives: int
    departs: int
    need: float
    power: float
    price_of_missing: float


@dataclass(frozen=True, kw_only=True)
class Microgrid(StoragePlant):
    """One home over one horizon, with its future. Series have one entry a step.

    The battery charges or discharges at most at `power`. The limit is its reserve, in kWh; of a
    home with a house it is the comfort band instead, in K.

    Attributes:
        capacity: kWh of the battery.
        efficiency: share kept on each way, (0, 1].
        energy: kWh at the start.
        import_cap: most kW bought.
        export_cap: most kW sold.
        wear: money per kWh moved through the battery.
        critical: share of the load that must be served even in an outage.
        regain: kWh by which the reserve comes back each step after an outage.
        load: kW.
        pv: kW.
        resale: money per kWh sold.
        schedule: kWh of the reserve while the grid is up, known in advance.
        up: 1 while the grid is up, 0 in an outage.
        chance: probability that a step begins an outage; empty if there are none.
        outage_hours: mean length of an outage; 0 if there are none.
        load_forecast: kW, shown at the start.
        pv_forecast: kW, shown at the start.
        load_updates: by step, kW of the few steps after it; empty if never refreshed.
        pv_updates: as `load_updates`.
        before: kW of load and sun in the hours before the start, oldest first; may be empty.
        car: the car; `None` if there is none.
        demand_charge: money per kW of the highest power bought in a step.
        house: the heated house, which has its own end prices; `None` if there is none.
        outside: °C; empty without a house, like the next three.
        low: least °C at the end of each step.
        outside_forecast: °C, shown at the start.
        outside_updates: by step, °C of the few steps after it.
        reserve: kWh that the battery must hold at the end of each step.
        worst: K by which the comfort band is missed at worst, by step; empty without a house.
    """

    SERIES: ClassVar[tuple[str, ...]] = (
        *("load", "pv", "price", "resale", "schedule", "up"),
        *("load_forecast", "pv_forecast"),
    )
    OPTIONAL_SERIES: ClassVar[tuple[str, ...]] = ("carbon", "outside", "low", "outside_forecast")

    capacity: float
    efficiency: float
    energy: float
    import_cap: float
    export_cap: float
    wear: float
    critical: float
    regain: float
    load: tuple[float, ...]
    pv: tuple[float, ...]
    resale: tuple[float, ...]
    schedule: tuple[float, ...]
    up: tuple[int, ...]
    chance: tuple[float, ...]
    outage_hours: float
    load_forecast: tuple[float, ...]
    pv_forecast: tuple[float, ...]
    load_updates: tuple[tuple[float, ...], ...]
    pv_updates: tuple[tuple[float, ...], ...]
    before: tuple[tuple[float, float], ...]
    car: Car | None
    demand_charge: float = 0.0
    house: House | None = None
    outside: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    outside_forecast: tuple[float, ...] = ()
    outside_updates: tuple[tuple[float, ...], ...] = ()
    reserve: tuple[float, ...] = field(init=False)
    worst: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Derive the devices and the reserve in force."""
        reserve = []
        most = math.inf
        for scheduled, up in zip(self.schedule, self.up, strict=True):
            most = round(most + self.regain, _DIGITS) if up else 0.0
            reserve.append(min(scheduled, most))
        present = {"BATTERY": True, "EV": self.car is not None, "HEAT": self.house is not None}
        worst = tuple(self._worst(self.house)) if self.house else ()
        scale = worst or self.schedule
        derived = {
            "reserve": tuple(reserve),
            "worst": worst,
            "devices": tuple(device for device, there in present.items() if there),
            "requirement": (max(scale), sum(scale)),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def _worst(self, house: House) -> Iterator[float]:
        """Yield the largest distance from the band: heat only adds, so none or all bounds it."""
        cold = hot = house.temperature
        for (drift, rise), low in zip(self.warming, self.low, strict=True):
            cold = house.keep(self.dt) * cold + drift
            hot = house.keep(self.dt) * hot + drift + rise * house.power
            yield max(low - cold, hot - house.high, 0.0)

    @property
    def initial(self) -> State:
        """Battery energy and indoor temperature at the start, and an uncharged car."""
        return State(self.energy, indoor=self.house.temperature if self.house else 0.0)

    @property
    def slack(self) -> float:
        """See the class."""
        return 0.1 if self.house else 0.06

    @property
    def price_of_miss(self) -> float:
        """See the class."""
        return self.house.price_of_missing if self.house else self.price_of_missing

    def closing(self, state: State) -> float:
        """Charge what is missing in the battery, and in the house, and pay what is extra."""
        money = super().closing(state)
        if house := self.house:
            extra = state.indoor - house.temperature
            money += settled(extra, house.price_of_missing, house.price_of_extra)
        return money

    def at_home(self, step: int) -> bool:
        """Return whether the car is at home."""
        return self.car is not None and self.car.arrives <= step < self.car.departs

    def required(self, step: int) -> float:
        """Reserve in force at the end of `step`, kWh; of a house the K missed at worst."""
        return self.worst[step] if self.house else self.reserve[step]

    def lacking(self, step: int, energy: float, indoor: float) -> float:
        """Return the kWh or K by which the limit is missed if a step ends so; not above 0 if kept.

        Args:
            step: the step.
            energy: kWh in the battery.
            indoor: °C in the house.
        """
        if self.house:
            return max(self.low[step] - indoor, indoor - self.house.high)
        return self.reserve[step] - energy

    @cached_property
    def warming(self) -> tuple[tuple[float, float], ...]:
        """By step the K that the house gains without heating, and those for each kW of it."""
        house, dt = self.house, self.dt
        if not house:
            return ()
        weather = zip(self.outside, self.pv, strict=True)
        return tuple((house.drift(dt, out, sun), house.rise(dt, out)) for out, sun in weather)

    @cached_property
    def _conditions(self) -> tuple[tuple[float, ...], ...]:
        """By step load, sun, price, price of what is sold, and most kW bought and sold."""
        caps = [(self.import_cap, self.export_cap) if up else (0.0, 0.0) for up in self.up]
        series = (self.load, self.pv, self.price, self.resale)
        return tuple(zip(*series, *zip(*caps, strict=True), strict=True))

    def advance(self, step: int, state: State, commands: Commands) -> StepResult:  # noqa: C901
        """Apply commands during `step`; physics clips them.

        The load comes first, then the heat pump, the car and charging; the sun is curtailed
        before the battery is held back. So charging never sheds load, and what a step costs is the
        least that the powers of battery and car allow.
        """
        dt = self.dt
        load, pv, price, resale, imports, exports = self._conditions[step]
        stored = state.stored
        command = commands[0]
        discharge = 0.0
        if command < 0.0:
            discharge = min(-command, self.power, stored * self.efficiency / dt)
        need, heat, ev = load, 0.0, 0.0
        if self.house:
            most = min(self.house.power, imports + pv + discharge - load)
            heat = max(min(commands[-1], most), 0.0)
            need += heat
        if self.car:
            spare = imports + pv + discharge - need
            ev = self._charging(self.car, step, state.charged, commands[1], spare)
        if command < 0.0:
            discharge = min(discharge, need + ev + exports)
            energy = max(stored - dt * discharge / self.efficiency, 0.0)
            moved = discharge
            net = need + ev - discharge - pv
            battery = -discharge
        else:
            room = (self.capacity - stored) / (self.efficiency * dt)
            battery = min(command, self.power, room, imports + pv - need - ev)
            if battery < 0.0:
                battery = 0.0
            energy = min(stored + dt * battery * self.efficiency, self.capacity)
            moved = battery
            net = need + ev + battery - pv
        unserved = bought = sold = 0.0
        exchange = net
        if price < 0.0 or resale < 0.0:
            exchange = self._cheapest_exchange(step, net, net + pv, imports, exports)
        if exchange >= 0.0:
            bought = exchange if exchange < imports else imports
            unserved = exchange - bought
            money = dt * (price * bought + self.wear * moved + LOST_LOAD * unserved)
        else:
            sold = -exchange if -exchange < exports else exports
            money = dt * (self.wear * moved - resale * sold)
        peak = state.peak
        if self.demand_charge and bought > peak:
            money += self.demand_charge * (bought - peak)
            peak = bought
        safety, indoor = 0.0, state.indoor
        if self.house:
            drift, rise = self.warming[step]
            indoor = self.house.keep(dt) * indoor + drift + rise * heat
        if (missed := self.lacking(step, energy, indoor)) > 0.0:
            charged_for, safety = self.judged(missed)
            money += charged_for
        if unserved > 0.0:
            dark = dt * (unserved - (1.0 - self.critical) * load)
            safety += dark if dark > TOLERANCE else 0.0
        done: Commands = (battery,)
        charged = 0.0
        if self.car:
            charged = state.charged + dt * ev
            done += (ev,)
            if step == self.car.departs - 1:
                money += self.car.price_of_missing * max(self.car.need - charged, 0.0)
        if self.house:
            done += (heat,)
        used = max(net + pv + sold - bought - unserved, 0.0)
        return StepResult(
            State(energy, charged, (), indoor, peak),
            money,
            safety,
            done,
            bought - sold,
            unserved,
            used if used < pv else pv,
        )

    def foreseen(self, step: int) -> Self:
        """The microgrid as shown at `step`.

        No outage is foreseen; a running one ends at once.
        """
        now = step + 1
        return replace(
            self,
            load=latest(self.load, self.load_forecast, self.load_updates, step),
            pv=latest(self.pv, self.pv_forecast, self.pv_updates, step),
            up=self.up[:now] + (1,) * (self.steps - now),
            load_updates=self.load_updates[:now],
            pv_updates=self.pv_updates[:now],
            **self._weather_as_known(step),
        )

    def _weather_as_known(self, step: int) -> dict[str, Any]:
        """The fields of a house's weather as shown at `step`."""
        if not self.house:
            return {}
        known = latest(self.outside, self.outside_forecast, self.outside_updates, step)
        return {"outside": known, "outside_updates": self.outside_updates[: step + 1]}

    def guarded(self, step: int, margin: float) -> Self:
        """Return the home with a comfort band whose low is `margin` K higher after a step.

        A plan for it keeps the band of the true one though the weather differs from its forecast.
        """
        low = [value + margin for value in self.low[step + 1 :]]
        return replace(self, low=(*self.low[: step + 1], *low)) if low else self

    @property
    def expected(self) -> Self:
        """The microgrid as announced at the start."""
        none: dict[str, Any] = {f"{name}_updates": () for name in ("load", "pv", "outside")}
        return replace(self.foreseen(0), **none)

    def _cheapest_exchange(
        self, step: int, least: float, most: float, imports: float, exports: float
    ) -> float:
        """Return the power taken from the grid at least cost, in kW; negative if it is sold.

        The demand charge is left aside: what panels do with the sun follows from this step alone.

        Args:
            step: the step.
            least: with all of the sun used.
            most: with none of it.
            imports: most kW bought.
            exports: most kW sold.
        """
        price, resale = self.price[step], self.resale[step]
        low, high = max(least, -exports), min(most, imports)
        if low >= high:
            return least
        ways = [low, 0.0, high] if low < 0.0 < high else [low, high]
        costs = [(price if power > 0.0 else resale) * power for power in ways]
        return ways[costs.index(min(costs))]

    def _charging(
        self, car: Car, step: int, charged: float, command: float, available: float
    ) -> float:
        """Return the power of the car in kW: 0 while it is away."""
        if not self.at_home(step):
            return 0.0
        return max(min(command, car.power, available, (car.need - charged) / self.dt), 0.0)
