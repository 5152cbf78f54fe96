"""The texts an operator reads: the opening, and what is new at each step."""

from collections.abc import Sequence

from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import LOST_LOAD, Microgrid
from tokengym.envs.energy.outcome import Commands, State
from tokengym.envs.energy.plants import Plant


def opening(plant: Plant) -> str:
    """Return the rules, the constants and the forecast table, for the first Turn."""
    return _opening_microgrid(plant) if isinstance(plant, Microgrid) else _opening_house(plant)


def conditions(plant: Plant) -> tuple[tuple[str, str], ...]:
    """Return by step the texts of a Turn before and after the state."""
    labels = _labels(plant)
    if isinstance(plant, House):
        return tuple(
            (
                f"{labels[t]}h indoor ",
                f" out {plant.outside[t]:g} gain {plant.gain[t]:g} buy {_cents(plant.price[t])} "
                f"low {plant.low[t]:g}" + _next(plant, t),
            )
            for t in range(plant.steps)
        )
    sells = len(set(plant.resale)) > 1
    return tuple(
        (
            f"{labels[t]}h energy ",
            f" load {plant.load[t]:g} sun {plant.pv[t]:g} buy {_cents(plant.price[t])} "
            + (f"sell {_cents(plant.resale[t])} " if sells else "")
            + (f"keep {plant.reserve[t]:.3g}" if plant.up[t] else "GRID DOWN")
            + _next(plant, t),
        )
        for t in range(plant.steps)
    )


def state(plant: Plant, step: int, seen: State) -> str:
    """Return the state as shown: battery energy or temperature, and the car while it is at home."""
    if isinstance(plant, Microgrid) and plant.car and plant.car[0] <= step < plant.car[1]:
        return f"{seen[0]:g} car {seen[1]:g}"
    return f"{seen[0]:g}"


def deviation(plant: Plant, commands: Commands, done: Commands) -> str:
    """Return the text on commands that physics clipped; empty if it clipped none."""
    clipped = [
        f"{device} did {power + 0.0:.2f}. "
        for device, wanted, power in zip(plant.devices, commands, done, strict=True)
        if abs(wanted - power) > 0.005
    ]
    if not clipped:
        return ""
    return "".join(clipped) if len(plant.devices) > 1 else clipped[0].partition(" ")[2].capitalize()


def ending(money: float, safety: Sequence[float]) -> str:
    """Return the text of the last Turn."""
    broken = sum(1 for cost in safety if cost > 0.0)
    kept = f"Limit broken in {broken} steps, by up to {max(safety):.2f}." if broken else "All kept."
    return f"End. Cost {100.0 * money:.0f} ct. {kept}"


def _opening_microgrid(grid: Microgrid) -> str:
    leak = f", leaks {100 * grid.leak:g}% a step" if grid.leak else ""
    lines = [
        f"Battery {grid.capacity:g} kWh, {grid.power:g} kW, {100 * grid.efficiency:g}% kept each "
        f"way{leak}. Run {_length(grid)} cheaply.",
        "Reply BATTERY kW (+ charge, - discharge). End each step with energy >= keep.",
    ]
    same = len(set(grid.resale)) == 1
    sale = f"Sell at {_cents(grid.resale[0])} ct" if same else "Sell"
    lines.append(
        f"{sale} up to {grid.export_cap:g} kW, wear {_cents(grid.wear)} ct. End: a kWh lost costs "
        f"{_cents(grid.price_of_missing)} ct, gained pays {_cents(grid.price_of_extra)}."
    )
    if max(grid.load_forecast) + grid.power + 1.0 > grid.import_cap or grid.car:
        lines.append(f"The grid gives up to {grid.import_cap:g} kW.")
    lines.extend(_outages(grid))
    if grid.rating:
        lines.append(
            f"Also GENSET kW: 0 or {0.05 * grid.rating:.2f} to {0.9 * grid.rating:.2f}, "
            f"fuel {_cents(grid.fuel)} ct/kWh."
        )
    labels = _labels(grid)
    if grid.car:
        arrives, departs, need, least, most, late = grid.car
        lines.append(
            f"Also EV kW: 0 or {least:g} to {most:g}. Car home from {labels[int(arrives)]}h to "
            f"{labels[int(departs) % grid.steps]}h, needs {need:g} kWh, missing costs "
            f"{_cents(late)} ct/kWh."
        )
    if grid.before:
        loads, suns = zip(*grid.before, strict=True)
        lines.append(f"Before: load {_listed(loads)}, sun {_listed(suns)}.")
    lines.append(f"h load sun kW, buy ct,{'' if same else ' sell ct,'} keep kWh")
    for t in range(grid.steps):
        sold = "" if same else f" {_cents(grid.resale[t])}"
        lines.append(
            f"{labels[t]} {grid.load_forecast[t]:g} {grid.pv_forecast[t]:g} "
            f"{_cents(grid.price[t])}{sold} {grid.schedule[t]:g}"
        )
    return "\n".join(lines)


def _outages(grid: Microgrid) -> list[str]:
    if not grid.chance:
        return []
    calm, storm = min(grid.chance), max(grid.chance)
    chance = f"{100 * calm:g}%"
    if storm > calm:
        hit = [label for label, p in zip(_labels(grid), grid.chance, strict=True) if p == storm]
        chance += f", {100 * storm:g}% at {hit[0]}-{hit[-1]}h"
    return [
        f"Chance that a step begins an outage: {chance}. Then keep is 0 and at least "
        f"{100 * grid.critical:g}% of the load must be served; unserved costs "
        f"{100 * LOST_LOAD:g} ct/kWh. Afterwards keep comes back by {grid.regain:g} a step."
    ]


def _opening_house(house: House) -> str:
    lost = 1.0 / house.resistance
    lines = [
        f"House: stores {house.capacity:g} kWh per degree, loses {lost:.2f} kW per degree above "
        f"outside, gains as listed. Run {_length(house)} cheaply.",
        f"Reply HEAT kW (0 to {house.power:g}); 1 kW gives {house.cop:g} kW heat. End each step "
        f"with indoor from low to {house.high:g}.",
        f"End: a degree missing costs {_cents(house.price_of_missing)} ct, extra pays "
        f"{_cents(house.price_of_extra)}.",
        "h out C, gain kW, buy ct, low C",
    ]
    lines.extend(
        f"{label} {out:g} {gain:g} {_cents(price)} {low:g}"
        for label, out, gain, price, low in zip(
            _labels(house),
            house.outside_forecast,
            house.gain_forecast,
            house.price,
            house.low,
            strict=True,
        )
    )
    return "\n".join(lines)


def _next(plant: Plant, step: int) -> str:
    """Fresh forecasts of the next steps, where the level has them."""
    if isinstance(plant, House):
        first, second = "out", "gain"
        updates = plant.outside_updates, plant.gain_updates
    else:
        first, second = "load", "sun"
        updates = plant.load_updates, plant.pv_updates
    if not updates[0] or not updates[0][step]:
        return ""
    return f" next {first} {_listed(updates[0][step])} {second} {_listed(updates[1][step])}"


def _labels(plant: Plant) -> list[str]:
    """Time of day by step: the hour, with minutes where it is not full."""
    minutes = [(plant.start + round(60 * plant.dt * t)) % 1440 for t in range(plant.steps)]
    return [f"{m // 60}:{m % 60:02d}" if m % 60 else str(m // 60) for m in minutes]


def _length(plant: Plant) -> str:
    if plant.dt == 1.0:
        return f"{plant.steps} h"
    return f"{plant.steps} steps of {60 * plant.dt:g} min"


def _cents(money: float) -> str:
    return f"{100.0 * money:.3g}"


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)
