"""The terse prompt, for tiny models trained on it: the same facts in few characters."""

from collections.abc import Sequence

from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import GENSET_LEAST, GENSET_MOST, LOST_LOAD, Microgrid
from tokengym.envs.energy.prompt import (
    EnergyPrompt,
    cents,
    fresh_forecasts,
    likelier_times,
    pays_to_buy,
    shortfall,
)

_SHORT = {"outside": "out"}


class TersePrompt(EnergyPrompt):
    """The short texts."""

    def _write_did(self, device: str) -> tuple[str, str]:
        return (f"{device} did " if len(self._plant.devices) > 1 else "Did "), ". "

    def missed(self, safety: float) -> str:
        """Return the text on a floor missed by `safety`."""
        return f"Missed {shortfall(safety)}. "

    def ending(self, money: float, safety: Sequence[float]) -> str:
        """Return the text of the last Turn."""
        broken = len([cost for cost in safety if cost > 0.0])
        verdict = "All kept."
        if broken:
            verdict = f"Limit broken in {broken} steps, by up to {shortfall(max(safety))}."
            if self._plant.budget:
                verdict = f"Missed {shortfall(sum(safety))} of {self._plant.budget:g} allowed."
        return f"End. Cost {100.0 * money:.0f} ct. {verdict}"

    def _write_rules(self) -> str:
        plant = self._plant
        return self._microgrid(plant) if isinstance(plant, Microgrid) else self._house(plant)

    def _write_conditions(self, step: int) -> tuple[str, str]:
        plant, label = self._plant, self._labels[step]
        if isinstance(plant, House):
            after = (
                f" out {plant.outside[step]:g} gain {plant.gain[step]:g} "
                f"buy {cents(plant.price[step])} low {plant.low[step]:g}"
            )
            return f"{label}h indoor ", after + self._next(step)
        sells = f"sell {cents(plant.resale[step])} " if len(set(plant.resale)) > 1 else ""
        after = (
            f" load {plant.load[step]:g} sun {plant.pv[step]:g} buy {cents(plant.price[step])} "
            f"{sells}" + (f"keep {plant.reserve[step]:g}" if plant.up[step] else "GRID DOWN")
        )
        return f"{label}h energy ", after + self._next(step)

    def _write_state(self, step: int) -> str:
        return "%g car %g" if self._car_is_home(step) else "%g"

    def _next(self, step: int) -> str:
        """Fresh forecasts of the next steps, where the level has them."""
        new = [
            f"{_SHORT.get(name, name)} {_listed(made)}"
            for name, made in fresh_forecasts(self._plant, step).items()
        ]
        return f" next {' '.join(new)}" if new else ""

    def _microgrid(self, grid: Microgrid) -> str:
        leak = f", leaks {100 * grid.leak:g}% a step" if grid.leak else ""
        same = len(set(grid.resale)) == 1
        sale = f"Sell at {cents(grid.resale[0])} ct" if same else "Sell"
        lines = [
            f"Battery {grid.capacity:g} kWh, {grid.power:g} kW, {100 * grid.efficiency:g}% kept "
            f"each way{leak}. Run {self._length()} cheaply.",
            "Reply BATTERY kW (+ charge, - discharge). End each step with energy >= keep.",
            f"{sale} up to {grid.export_cap:g} kW, wear {cents(grid.wear)} ct. End: a kWh lost "
            f"costs {cents(grid.price_of_missing)} ct, gained pays {cents(grid.price_of_extra)}.",
            "Energy is rounded down, surplus sun is lost, no command is 0 kW.",
            *self._limits(grid),
            f"h load sun kW, buy ct,{'' if same else ' sell ct,'} keep kWh",
        ]
        for t in range(grid.steps):
            sold = "" if same else f" {cents(grid.resale[t])}"
            lines.append(
                f"{self._labels[t]} {grid.load_forecast[t]:g} {grid.pv_forecast[t]:g} "
                f"{cents(grid.price_forecast[t])}{sold} {grid.schedule[t]:g}"
            )
        return "\n".join(lines)

    def _limits(self, grid: Microgrid) -> list[str]:
        """Write the rules of devices and prices that only some homes have."""
        lines = [*self._allowance()]
        if pays_to_buy(grid):
            lines.append("At a negative buy or sell, sun is left unused where cheaper.")
        if max(grid.load_forecast) + grid.power + 1.0 > grid.import_cap or grid.car:
            lines.append(f"The grid gives up to {grid.import_cap:g} kW: load, then car, battery.")
        if grid.chance:
            lines.append(self._outages(grid))
        if grid.rating:
            least, most = GENSET_LEAST * grid.rating, GENSET_MOST * grid.rating
            lines.append(
                f"Also GENSET kW: 0 or {least:.2f} to {most:.2f}, fuel {cents(grid.fuel)} ct/kWh."
            )
        if grid.car:
            arrives, departs, need, least, most, late = grid.car
            lines.append(
                f"Also EV kW: 0 or {least:g} to {most:g}. Car home from "
                f"{self._labels[int(arrives)]}h to {self._labels[int(departs) % grid.steps]}h, "
                f"needs {need:g} kWh, takes {need + least * grid.dt:g}, missing costs "
                f"{cents(late)} ct/kWh."
            )
        if grid.leaving:
            lines.append(f"It may leave after any step at home: chance {100 * grid.leaving:g}%.")
        if grid.spike:
            lines.append(
                f"Unforeseen spikes raise buy by {cents(grid.spike)} ct: chance "
                f"{100 * max(grid.spike_chance):g}% a step at {self._times(grid.spike_chance)}."
            )
        if grid.before:
            loads, suns = zip(*grid.before, strict=True)
            lines.append(f"Before: load {_listed(loads)}, sun {_listed(suns)}.")
        return lines

    def _times(self, chances: Sequence[float]) -> str:
        return " ".join(f"{self._labels[i]}-{self._labels[j]}h" for i, j in likelier_times(chances))

    def _outages(self, grid: Microgrid) -> str:
        chance = f"{100 * min(grid.chance):g}%"
        if storms := self._times(grid.chance):
            chance += f", {100 * max(grid.chance):g}% at {storms}"
        return (
            f"Chance that a step begins an outage: {chance}; it lasts {grid.outage_hours:g} h on "
            "average. "
            f"Then keep is 0 and at least {100 * grid.critical:g}% of the load must be served; "
            f"unserved costs {100 * LOST_LOAD:g} ct/kWh. Afterwards keep comes back by "
            f"{grid.regain:g} a step."
        )

    def _house(self, house: House) -> str:
        dt = "" if house.dt == 1.0 else f"{house.dt:g} "
        lines = [
            f"House: a step adds {dt}({house.cop:g} HEAT + gain - {house.loss:g} (indoor - out)) / "
            f"{house.capacity:g} degrees. Run {self._length()} cheaply.",
            f"Reply HEAT kW (0 to {house.power:g}). End each step with indoor from low to "
            f"{house.high:g}.",
            f"End: a degree missing costs {cents(house.price_of_missing)} ct, extra pays "
            f"{cents(house.price_of_extra)}.",
            "Indoor is rounded down, no command is 0 kW.",
            *self._allowance(),
            "h out C, gain kW, buy ct, low C",
        ]
        lines.extend(
            f"{label} {out:g} {gain:g} {cents(price)} {low:g}"
            for label, out, gain, price, low in zip(
                self._labels,
                house.outside_forecast,
                house.gain_forecast,
                house.price,
                house.low,
                strict=True,
            )
        )
        return "\n".join(lines)

    def _allowance(self) -> list[str]:
        plant = self._plant
        if plant.budget:
            return [f"Up to {plant.budget:g} may be missed in all."]
        each = "degree" if isinstance(plant, House) else "kWh"
        price = cents(plant.price_of_miss)
        return [f"A miss up to {plant.slack:g} only costs {price} ct a {each}."]

    def _length(self) -> str:
        plant = self._plant
        if plant.dt == 1.0:
            return f"{plant.steps} h"
        return f"{plant.steps} steps of {60 * plant.dt:g} min"


def _listed(values: Sequence[float]) -> str:
    return " ".join(map(_short, values))


def _short(value: float) -> str:
    return f"{value:g}"
