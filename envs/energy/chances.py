"""Planning against stated chances: dynamic programming over price spikes and a car that may leave.

Loads and sun are taken as forecast. Battery and car are planned one after the other: they share
only the price of what is bought, as the car is seldom at home while the sun shines.
"""

import numpy as np

from tokengym.envs.energy.microgrid import LOST_LOAD, Microgrid
from tokengym.envs.energy.step_result import Commands, State
from tokengym.rewards.arrays import Floats

_STORES = 81
_CHOICES = 801
_CAR_PARTS = 10
"""The car's energies are multiples of what this part of its most power stores in a step."""
_NEVER = 1e6
"""Money for what cannot be done."""


def commands_against_chances(grid: Microgrid, step: int, state: State) -> Commands:
    """Return the commands of least expected money, in kW.

    Args:
        grid: the microgrid as shown at `step`.
        step: the step to be commanded.
        state: the state as shown.
    """
    ev = _car_power(grid, step, state.charged) if grid.at_home(step) else 0.0
    store_E = np.union1d(np.linspace(0.0, grid.capacity, _STORES), [grid.energy, *grid.reserve])
    extra_E = store_E - grid.energy
    value_E = -np.where(extra_E > 0.0, grid.price_of_extra, grid.price_of_missing) * extra_E
    for later in reversed(range(step + 1, grid.steps)):
        value_E = sum(
            chance * (_money(grid, later, price, store_E, store_E, 0.0) + value_E).min(axis=1)
            for chance, price in _prices(grid, later)
        )
    after_E = np.union1d(store_E, np.linspace(0.0, grid.capacity, _CHOICES))
    after_E = np.union1d(after_E, state.stored * (1.0 - grid.leak))
    (money_E,) = _money(grid, step, grid.price[step], np.array([state.stored]), after_E, ev)
    best = after_E[np.argmin(money_E + np.interp(after_E, store_E, value_E))]
    change = (best - state.stored * (1.0 - grid.leak)) / grid.dt
    battery = change / grid.efficiency if change > 0.0 else change * grid.efficiency
    return (float(battery), ev) if grid.car else (float(battery),)


def _prices(grid: Microgrid, step: int) -> list[tuple[float, float]]:
    """Return the prices that a later step may have, each after its chance."""
    price, chance = grid.price[step], grid.spike_chance[step] if grid.spike else 0.0
    return [(1.0 - chance, price), (chance, price + grid.spike)]


def _money(
    grid: Microgrid, step: int, price: float, before_E: Floats, after_E: Floats, ev: float
) -> Floats:
    """Return the money of moving the battery from one energy to another, shape (before, after)."""
    change_EE = (after_E - (1.0 - grid.leak) * before_E[:, None]) / grid.dt
    moved_EE = np.where(change_EE > 0.0, change_EE / grid.efficiency, change_EE * grid.efficiency)
    net_EE = grid.load[step] + ev - grid.pv[step] + moved_EE
    imports, exports = (grid.import_cap, grid.export_cap) if grid.up[step] else (0.0, 0.0)
    lost_EE = np.maximum(net_EE - imports, 0.0)
    money_EE = price * (np.maximum(net_EE, 0.0) - lost_EE) + LOST_LOAD * lost_EE
    money_EE -= grid.resale[step] * np.clip(-net_EE, 0.0, exports)
    money_EE += grid.wear * np.abs(moved_EE)
    possible_EE = (np.abs(moved_EE) <= grid.power) & (moved_EE >= -(grid.load[step] + ev + exports))
    missed_E = np.maximum(grid.reserve[step] - after_E, 0.0)
    return np.where(possible_EE, grid.dt * money_EE, _NEVER) + _NEVER * missed_E


def _car_power(grid: Microgrid, step: int, charged: float) -> float:
    """Return the power of a car at home in kW, as if its energy were all bought."""
    _, departs, need, least, most, late = grid.car
    part = most / _CAR_PARTS
    charge_Q = np.arange(0.0, need + least * grid.dt + part, part * grid.dt)
    power_P = part * np.r_[0, np.ceil(least / part - 1e-9) : _CAR_PARTS + 1]

    def best(at: int, price: float, charge_Q: Floats, power_P: Floats, value_Q: Floats) -> Floats:
        """Return the expected money by charge and power, shape (Q, P)."""
        after_QP = charge_Q[:, None] + grid.dt * power_P
        missing_QP = late * np.maximum(need - after_QP, 0.0)
        stays = 0.0 if at == departs - 1 else 1.0 - grid.leaving
        later_QP = np.interp(after_QP, known_Q, value_Q)
        money_QP = price * grid.dt * power_P + (1.0 - stays) * missing_QP + stays * later_QP
        fits_QP = after_QP <= need + least * grid.dt + 1e-9
        return np.where(fits_QP, money_QP, _NEVER)

    known_Q, value_Q = charge_Q, np.zeros(len(charge_Q))
    for later in reversed(range(step + 1, int(departs))):
        value_Q = np.sum(
            [
                chance * best(later, price, charge_Q, power_P, value_Q).min(axis=1)
                for chance, price in _prices(grid, later)
            ],
            axis=0,
        )
    rest = min(max((need - charged) / grid.dt, least), most)
    power_P = np.union1d(np.linspace(least, most, 24), [0.0, rest])
    (money_P,) = best(step, grid.price[step], np.array([charged]), power_P, value_Q)
    return float(power_P[np.argmin(money_P)])
