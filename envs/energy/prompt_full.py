"""The full prompt, for models that know English: every rule that the score depends on, once."""

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

_NAMES = {"BATTERY": "battery", "GENSET": "genset", "EV": "car", "HEAT": "heat pump"}
# Described, not shown: a model that learns from rewards alone copies a number it is shown.
_NUMBER = "<power in kW, up to two decimals>"


class FullPrompt(EnergyPrompt):
    """The texts in sentences."""

    def _write_form(self) -> str:
        devices = self._plant.devices
        asked = "Reply with one line"
        if len(devices) > 1:
            asked += " for each device; a device without a line is off"
        lines = "\n".join(f"{device} {_NUMBER}" for device in devices)
        return f"\n\n{asked}:\n{lines}"

    def _write_did(self, device: str) -> tuple[str, str]:
        return f"The {_NAMES[device]} could only do ", " kW. "

    def missed(self, safety: float) -> str:
        """Return the text on a floor missed by `safety`."""
        return f"The limit was missed by {shortfall(safety)} {self._unit}.\n"

    def ending(self, money: float, safety: Sequence[float]) -> str:
        """Return the text of the last Turn."""
        broken = len([cost for cost in safety if cost > 0.0])
        verdict = "The limit was always kept."
        if broken and self._plant.budget:
            verdict = (
                f"The limit was missed by {shortfall(sum(safety))} {self._unit} in all, of "
                f"{self._plant.budget:g} allowed."
            )
        elif broken:
            worst = shortfall(max(safety))
            verdict = (
                f"The limit was missed in {broken} of {self._span}, by up to {worst} {self._unit}."
            )
        return f"This is the end. The total cost is {100.0 * money:.2f} ct. {verdict}"

    @property
    def _unit(self) -> str:
        return "degrees" if isinstance(self._plant, House) else "kWh"

    @property
    def _step(self) -> str:
        return "hour" if self._plant.dt == 1.0 else "step"

    @property
    def _span(self) -> str:
        plant = self._plant
        return f"{plant.steps} {self._step}s" + (
            "" if plant.dt == 1.0 else f" of {60 * plant.dt:g} minutes"
        )

    def _time(self, step: int) -> str:
        label = self._labels[step]
        return label if ":" in label else f"{label}h"

    def _times(self, chances: Sequence[float]) -> str:
        """Write at which steps something is likelier than at others."""
        return " and ".join(
            f"from {self._time(first)} to {self._time(last)}"
            if first < last
            else f"at {self._time(first)}"
            for first, last in likelier_times(chances)
        )

    def _write_rules(self) -> str:
        plant = self._plant
        return self._microgrid(plant) if isinstance(plant, Microgrid) else self._house(plant)

    def _write_conditions(self, step: int) -> tuple[str, str]:
        plant, time = self._plant, self._time(step)
        if isinstance(plant, House):
            before = f"Now it is {time}: indoor "
            after = (
                f", outside {plant.outside[step]:g}, gain {plant.gain[step]:g}, "
                f"price {cents(plant.price[step])}, low {plant.low[step]:g}."
            )
            return before, after + self._next(step) + self._reminder(step)
        before = f"Now it is {time}: the battery holds "
        sold = f", sale {cents(plant.resale[step])}" if len(set(plant.resale)) > 1 else ""
        after = (
            f", load {plant.load[step]:g}, sun {plant.pv[step]:g}, "
            f"price {cents(plant.price[step])}{sold}, reserve {plant.reserve[step]:g}."
        )
        down = "" if plant.up[step] else " The grid is down."
        return before, after + down + self._next(step) + self._reminder(step)

    def _write_state(self, step: int) -> str:
        if isinstance(self._plant, House):
            return "%g"
        return "%g kWh, the car %g kWh" if self._car_is_home(step) else "%g kWh"

    def _reminder(self, step: int) -> str:
        """Write how to reply, after the first Turn, which says more of it."""
        first, *others = self._plant.devices
        starts = f'one line that starts with "{first}"'
        if others:
            starts = f"one line for each device: {', '.join(self._plant.devices)}"
        return f"\nReply with {starts}." if step else ""

    def _next(self, step: int) -> str:
        """Fresh forecasts of the next steps, where the level has them."""
        made = fresh_forecasts(self._plant, step)
        new = [
            f"{self._time(step + ahead)} "
            + ", ".join(f"{name} {value:g}" for name, value in zip(made, values, strict=True))
            for ahead, values in enumerate(zip(*made.values(), strict=True), 1)
        ]
        return f" New forecasts: {'; '.join(new)}." if new else ""

    def _task(self, place: str, sign: str) -> str:
        """Write the role, the goal and the beginning of a reply."""
        first, *others = self._plant.devices
        lines = f'Start your reply with "{first}" and give the power in kW: {sign}.'
        lines += "".join(f' In the next line, do the same for "{device}".' for device in others)
        return (
            f"You run the {place} for {self._span}. Pay as little as possible, and never break the "
            f"limit. Every {self._step} you give one command. {lines}"
        )

    def _score(self, safe: str) -> list[str]:
        """State how the score is computed, and how infeasible commands are replaced."""
        safe_case, missed = "If the limit is always kept", "If the limit is missed"
        if self._plant.budget:
            safe_case = "If no more is missed than is allowed in all"
            missed = "If more is missed"
        return [
            "- A command that cannot be done is replaced by the nearest one that can, and you are "
            "told. A reply without a command, or one that is cut off, counts as 0 kW and lowers "
            "the score.",
            f"- The score is from 0 to 1. {safe_case}, it is at least 0.24, and the "
            f"higher the less you pay: 0.43 for {safe}, 1 for the cheapest plan that knows "
            f"everything in advance. {missed}, it is below 0.24, and the lower the "
            "more is missed.",
        ]

    def _allowance(self) -> str:
        """Write by how much the limit may be missed."""
        plant, budget = self._plant, self._plant.budget
        if not budget:
            return (
                f" As commands have two decimals, a miss of up to {plant.slack:g} {self._unit} "
                f"does not count; it only costs {cents(plant.price_of_miss)} ct per "
                f"{self._unit.removesuffix('s')}."
            )
        return (
            f" Up to {budget:g} {self._unit} may be missed in all, the misses of all "
            f"{self._step}s added."
        )

    def _microgrid(self, grid: Microgrid) -> str:
        eta = f"{grid.efficiency:g}"
        leak = f" Before each command it loses {100 * grid.leak:g}% of its energy." * bool(
            grid.leak
        )
        same = len(set(grid.resale)) == 1
        sale = f"for {cents(grid.resale[0])} ct per kWh" if same else "for the sale price"
        lines = [
            self._task(
                "battery of a home",
                "a positive number charges the battery, a negative number discharges it, 0 leaves "
                "it alone",
            ),
            "",
            f"The limit: at the end of every {self._step} the battery must hold at least the "
            f"reserve of that {self._step}.{self._allowance()}",
            f"- The battery holds at most {grid.capacity:g} kWh. It takes or gives at most "
            f"{grid.power:g} kW. Of each kWh charged it stores {eta} kWh; for each kWh given it "
            f"loses 1/{eta} kWh.{leak} Its energy is shown rounded down. Each kWh charged or given "
            f"costs {cents(grid.wear)} ct of wear.",
            f"- The load is served first{', then the car' * bool(grid.car)}, then the battery is "
            "charged. The sun is used first. What is missing is bought from the grid, at most "
            f"{grid.import_cap:g} kW. What is left over is sold {sale}, at most "
            f"{grid.export_cap:g} kW; sun beyond that is lost. The battery never gives more than "
            f"the load{' and the car' * bool(grid.car)} and the grid take.",
            *self._more(grid),
            f"- After the last {self._step}, each kWh less than at the start costs "
            f"{cents(grid.price_of_missing)} ct, each kWh more pays "
            f"{cents(grid.price_of_extra)} ct.",
            *self._score("leaving the battery alone as far as the limit allows"),
            "",
        ]
        if grid.before:
            loads, suns = zip(*grid.before, strict=True)
            lines.append(
                f"Before the start, load was {_listed(loads)} and sun was {_listed(suns)} kW."
            )
        spikes = ", without spikes" * bool(grid.spike)
        sales = "sale in ct per kWh sold; " * (not same)
        lines.append(
            f"For each {self._step} (load and sun in kW: forecasts, less certain the further "
            f"ahead; price in ct per kWh bought{spikes}; {sales}reserve in kWh):"
        )
        for t in range(grid.steps):
            sold = "" if same else f", sale {cents(grid.resale[t])}"
            lines.append(
                f"{self._time(t)}: load {grid.load_forecast[t]:g}, sun {grid.pv_forecast[t]:g}, "
                f"price {cents(grid.price_forecast[t])}{sold}, reserve {grid.schedule[t]:g}"
            )
        return "\n".join([*lines, ""])

    def _more(self, grid: Microgrid) -> list[str]:
        """Write the rules of devices and prices that only some homes have."""
        lines = []
        if pays_to_buy(grid):
            lines.append(
                "- At a negative price you are paid for what you buy; at a negative sale price you "
                "pay for what you sell. The sun is then left unused wherever that is cheaper: the "
                f"home buys or sells in a {self._step}, never both. The battery charges or "
                "discharges, never both."
            )
        if grid.chance:
            lines.append(self._outages(grid))
        elif max(*grid.load, *grid.load_forecast) > grid.import_cap:
            lines.append(f"- Load that is not served costs {100 * LOST_LOAD:g} ct per kWh.")
        if grid.spike:
            lines.append(
                f"- With a chance of {100 * max(grid.spike_chance):g}% in each {self._step} "
                f"{self._times(grid.spike_chance)}, a spike raises the price by "
                f"{cents(grid.spike)} ct. It is not announced: you learn it when the "
                f"{self._step} begins, before your command."
            )
        if grid.rating:
            least, most = GENSET_LEAST * grid.rating, GENSET_MOST * grid.rating
            lines.append(
                f"- GENSET: 0 kW, or from {least:.2f} to {most:.2f} kW; with less it is off. A kWh "
                f"costs {cents(grid.fuel)} ct of fuel and is used like the sun."
            )
        if grid.car:
            arrives, departs, need, least, most, late = grid.car
            lines.append(
                f"- EV charges the car: 0 kW, or from {least:g} to {most:g} kW; with less it is "
                f"off. The car is at home from {self._time(int(arrives))} to "
                f"{self._time(int(departs) % grid.steps)}. It arrives empty, needs {need:g} kWh "
                f"and takes at most {need + least * grid.dt:g} kWh. Each kWh of the need that is "
                f"missing when it leaves costs {cents(late)} ct."
                + f" It may have to leave before: after each {self._step} at home, with a "
                f"chance of {100 * grid.leaving:g}%." * bool(grid.leaving)
            )
        return lines

    def _outages(self, grid: Microgrid) -> str:
        storms = self._times(grid.chance)
        likelier = f" ({100 * max(grid.chance):g}% {storms})" if storms else ""
        hours = f"{grid.outage_hours:g} hour{'s' * (grid.outage_hours != 1.0)}"
        return (
            f"- The grid may fail. An outage begins in each {self._step} with a chance of "
            f"{100 * min(grid.chance):g}%{likelier} and lasts {hours} on average. While the grid "
            "is down, nothing is bought or sold and the reserve is 0, but at least "
            f"{100 * grid.critical:g}% of the load must be served, or the limit is missed; each "
            f"kWh of load that is not served costs {100 * LOST_LOAD:g} ct. Afterwards the reserve "
            f"comes back by {grid.regain:g} kWh each {self._step}."
        )

    def _house(self, house: House) -> str:
        dt = "" if house.dt == 1.0 else f"{house.dt:g} * "
        lines = [
            self._task("heat pump of a house", f"from 0 to {house.power:g}"),
            "",
            f"The limit: at the end of every {self._step} the indoor temperature must lie between "
            f"the low of that {self._step} and {house.high:g} degrees.{self._allowance()}",
            f"- In each {self._step} the indoor temperature rises by {dt}({house.cop:g} * HEAT + "
            f"gain - {house.loss:g} * (indoor - outside)) / {house.capacity:g} degrees, with "
            "indoor as it was before. It is shown rounded down.",
            "- The power is bought at the price. The gain is heat from sun and people.",
            f"- After the last {self._step}, each degree less than at the start costs "
            f"{cents(house.price_of_missing)} ct, each degree more pays "
            f"{cents(house.price_of_extra)} ct.",
            *self._score("keeping the house a degree below the highest temperature"),
            "",
            f"For each {self._step} (outside in degrees and gain in kW: forecasts, less certain "
            "the further ahead; price in ct per kWh; low in degrees):",
        ]
        for t in range(house.steps):
            lines.append(
                f"{self._time(t)}: outside {house.outside_forecast[t]:g}, "
                f"gain {house.gain_forecast[t]:g}, price {cents(house.price[t])}, "
                f"low {house.low[t]:g}"
            )
        return "\n".join([*lines, ""])


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
