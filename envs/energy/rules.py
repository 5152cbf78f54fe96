"""Rules of thumb, functions of what is shown: the safe hold, self-consumption, time of use.

Each takes the plant as foreseen at a step and the state as seen, and returns commands in kW.
"""

from collections.abc import Callable

from tokengym.envs.energy.house import House
from tokengym.envs.energy.microgrid import Car, Microgrid
from tokengym.envs.energy.oracle import Simulation, simulate_rule
from tokengym.envs.energy.step_result import Commands, State, rounded_down, rounded_up

Rule = Callable[[Microgrid, int, State], Commands]

_SHARE_OF_POWER = 0.9
_MARGIN = 0.05
_TARIFF_STEPS = 3
"""Different prices that a time-of-use tariff has at most."""
_HOURS_TO_WARM = 4
"""How far ahead rules of thumb look for a comfort band that rises."""
_LEAST_SCALE = 0.05


def hold(plant: Microgrid, step: int, state: State) -> Commands:
    """The reference: 0 kW, but charge in time for the reserve and serve the load in an outage.

    A car is charged as soon as it can be; a house is kept in the middle of its comfort band.
    """
    battery = max(_missing(plant, step, state, plant.steps), 0.0)
    heat = _heat_to(plant, step, state, lambda house: house.high - 1.0)
    return _with_others(plant, step, state, battery, heat)


def self_consumption(plant: Microgrid, step: int, state: State) -> Commands:
    """Store the sun's surplus and cover deficits, down to the reserve of this step.

    It never buys to charge, so that a reserve that rises can catch it short. A house is heated to
    the lower edge of its comfort band.
    """
    heat = _heat_to(plant, step, state, lambda house: plant.low[step])
    surplus = plant.pv[step] - plant.load[step] - heat
    least = min(_missing(plant, step, state, 1), 0.0)
    return _with_others(plant, step, state, max(surplus, least), heat)


def time_of_use(plant: Microgrid, step: int, state: State) -> Commands:
    """Charge at the lowest price, cover deficits at the highest, keep the next step's reserve.

    The lowest and the highest price are quarters of the day where prices are hourly. A house is
    heated to the top of its band at the lowest, else to what the next hours ask for.
    """
    price = plant.price[step]
    cheap = price <= cheap_and_dear(plant)[0]
    least = _missing(plant, step, state, 2)
    heat = _heat_to(plant, step, state, lambda house: _warm_by_price(plant, house, step))
    deficit = plant.load[step] - plant.pv[step] + heat
    if cheap:
        battery = plant.power
    elif _is_dear(plant, step):
        battery = -deficit
    else:
        battery = max(-deficit, 0.0)
    return _with_others(plant, step, state, max(battery, least), heat, waits=True)


def peak_shaving(plant: Microgrid, step: int, state: State) -> Commands:
    """Store the sun's surplus, cover deficits at the highest price, recharge below the reserve.

    It asks for no more than this step's conditions and the highest price. Below the reserve it
    charges at full power, since a reserve that rose may take more than one step. A house is heated
    as by `time_of_use`.
    """
    missing = _missing(plant, step, state, 1)
    heat = _heat_to(plant, step, state, lambda house: _warm_by_price(plant, house, step))
    surplus = plant.pv[step] - plant.load[step] - heat
    if missing > 0.0:
        battery = plant.power
    elif surplus >= 0.0:
        battery = surplus
    else:
        battery = max(surplus, missing) if _is_dear(plant, step) else 0.0
    return _with_others(plant, step, state, battery, heat, waits=True)


def backward_pass(plant: Microgrid, step: int, state: State) -> Commands:
    """Store now only what cannot be had later as cheaply, and keep what dearer steps need.

    One pass from the end back to the next step says how much to store at the price of now, another
    how much to keep rather than use now; a third how warm a house must be. A car charges in the
    cheapest steps that it needs.

    Source: the warehouse problem of Cahn, Bulletin of the American Mathematical Society 54 (1948).
    """
    heat = _heat_to(plant, step, state, lambda house: _warmth_wanted(plant, house, step))
    price = plant.price[step]
    lost, worn = plant.efficiency**2, 2.0 * plant.wear
    target = _energy_wanted(plant, step, dear=price / lost + worn, cheap=price)
    kept = _energy_wanted(plant, step, dear=price, cheap=(price - worn) * lost)
    stored = state.stored
    deficit = plant.load[step] - plant.pv[step] + heat
    usable = max(stored - kept, 0.0) * plant.efficiency / plant.dt
    lacking = (target - stored) / (plant.efficiency * plant.dt)
    battery = max(-deficit if deficit < 0.0 else -min(deficit, usable), lacking, -plant.power)
    battery = max(min(battery, plant.power), _missing(plant, step, state, 2))
    commands = _with_others(plant, step, state, battery, heat)
    if plant.car and plant.up[step] and not _charges_now(plant, plant.car, step, state):
        return (commands[0], 0.0, *commands[2:])
    return commands


def cheap_and_dear(grid: Microgrid) -> tuple[float, float]:
    """Return the prices up to which power is cheap, and from which it is dear.

    Of a tariff of a few steps the lowest and the highest, else those of a quarter of the steps.
    """
    known = sorted(grid.price)
    part = len(known) // 4 if len(set(known)) > _TARIFF_STEPS else 1
    return known[part - 1], known[-part]


def reference(plant: Microgrid) -> Simulation:
    """Run the safe hold through the plant; it reads only the plant and the state as shown."""
    return simulate_rule(
        plant, lambda step, state: hold(plant.foreseen(step), step, plant.seen(step, state))
    )


def scale_of(standard: float, reference: float) -> float:
    """Return the money of a unit of the score: what the standard controller costs more.

    Args:
        standard: its expected cost.
        reference: that of the reference plan; the scale is at least a twentieth of it.
    """
    return round(max(standard - reference, _LEAST_SCALE * abs(reference)), 4)


def _energy_wanted(grid: Microgrid, step: int, *, dear: float, cheap: float) -> float:
    """Return the kWh to hold after a step for later ones at prices above `dear`.

    The sun's surplus, and what can be bought at prices up to `cheap`, is had later.
    """
    wanted = max(grid.energy, grid.reserve[-1])
    for later in reversed(range(step + 1, grid.steps)):
        surplus = grid.pv[later] - grid.load[later]
        price = grid.price[later]
        if price <= cheap:
            wanted -= grid.power * grid.efficiency * grid.dt
        elif surplus >= 0.0:
            wanted -= min(surplus, grid.power) * grid.efficiency * grid.dt
        elif price > dear:
            wanted += min(-surplus, grid.power) * grid.dt / grid.efficiency
        wanted = min(max(wanted, grid.reserve[later - 1]), grid.capacity)
    return wanted


def _warmth_wanted(grid: Microgrid, house: House, step: int) -> float:
    """Return the °C to reach with a step, so that later dearer ones need no more heat."""
    wanted, keep = house.temperature, house.keep(grid.dt)
    price = grid.price[step] / grid.warming[step][1]
    for later in reversed(range(step + 1, grid.steps)):
        drift, rise = grid.warming[later]
        wanted = max(wanted, grid.low[later]) - drift
        if grid.price[later] / rise * keep ** (later - step) <= price:
            wanted -= rise * house.power
        wanted = min(wanted / keep, house.high)
    return min(max(wanted, grid.low[step]), house.high - _MARGIN)


def _warm_by_price(grid: Microgrid, house: House, step: int) -> float:
    """Return the °C to reach with a step: the top of the band where power is cheap."""
    if grid.price[step] <= cheap_and_dear(grid)[0]:
        return house.high - _MARGIN
    return max(grid.low[step : step + _HOURS_TO_WARM])


def _charges_now(grid: Microgrid, car: Car, step: int, state: State) -> bool:
    """Return whether a step is among the cheapest that the car needs before it leaves."""
    need = (car.need - state.charged) / (car.power * grid.dt)
    cheaper = [price < grid.price[step] for price in grid.price[step : car.departs]]
    return sum(cheaper) < need


def _missing(grid: Microgrid, step: int, state: State, ahead: int) -> float:
    """Return the least battery power in kW that meets the reserves of the next `ahead` steps.

    Negative if there is energy to spare. In an outage nothing is reserved.
    """
    reach = grid.dt * grid.efficiency * _SHARE_OF_POWER * grid.power
    needed = reached = 0.0
    for reserve in grid.reserve[step : step + ahead]:
        needed = max(needed, reserve - reached)
        reached += reach
    missing = needed - state.stored
    if missing > 0.0:
        return rounded_up(missing / (grid.efficiency * grid.dt))
    return -rounded_down(-missing * grid.efficiency / grid.dt)


def _is_dear(grid: Microgrid, step: int) -> bool:
    """Return whether a price is among the highest."""
    cheap, dear = cheap_and_dear(grid)
    return grid.price[step] >= dear and grid.price[step] > cheap


def _with_others(
    grid: Microgrid, step: int, state: State, battery: float, heat: float, *, waits: bool = False
) -> Commands:
    """Add car and heat pump to a battery command; in an outage, serve the load first.

    The car is charged at once, or `waits` while power is dear.
    """
    commands = [battery]
    if not grid.up[step]:
        commands[0] = -rounded_up(grid.load[step] - grid.pv[step]) + 0.0
    if grid.car:
        missing = grid.car.need - state.charged
        idle = missing <= 0.01 or not grid.up[step] or (waits and _is_dear(grid, step))
        commands.append(0.0 if idle else min(missing / grid.dt, grid.car.power))
    return (*commands, heat) if grid.house else tuple(commands)


def _heat_to(grid: Microgrid, step: int, state: State, target: Callable[[House], float]) -> float:
    """Return the power in kW that ends the step at a target in °C, rounded up to hundredths.

    0 without a house.
    """
    if not grid.house:
        return 0.0
    drift, rise = grid.warming[step]
    free = grid.house.keep(grid.dt) * state.indoor + drift
    return min(max(rounded_up((target(grid.house) - free) / rise), 0.0), grid.house.power)
