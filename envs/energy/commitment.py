"""Unit commitment ahead of uncertainty: dynamic programming over energy, units and possible days.

The values of the battery's energy are kept on a grid and interpolated, the runs of both units and
the days that may still come are exact. Powers are in tenths of a kW, of the hour that is commanded
in hundredths.

Source: Bellman, Dynamic Programming (1957); as a problem Takriti, Birge and Long, IEEE Transactions
on Power Systems 11 (1996).
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.energy.microgrid import LOST_LOAD
from tokengym.envs.energy.site import OffGridSite, Unit, shares
from tokengym.envs.energy.step_result import Commands, State
from tokengym.rewards.arrays import Floats

ENERGIES = 49
"""Battery energies of the grid, from the floor to the capacity."""
_UNSAFE = 300.0
"""Money per kWh by which the limit is missed in later hours; less would be worth paying."""
_NEVER = 1e6
"""The same in the hour that is commanded: there not even a little is bought."""
_KEPT = 64


class PossibleDay(NamedTuple):
    """A day that is planned for: its chance, and load and sun by hour in kW."""

    chance: float
    load: tuple[float, ...]
    sun: tuple[float, ...]


Runs = tuple[int, ...]
"""By unit what `State.running` says."""
Node = tuple[int, tuple[int, ...]]
"""An hour and the days that may still come before it."""
Values = Mapping[Node, Floats]
"""Least expected money from a node on, by energy and the runs of both units."""


def planned(
    site: OffGridSite,
    days: tuple[PossibleDay, ...],
    node: Node,
    state: State,
    energies: int = ENERGIES,
) -> Commands:
    """Return the commands of least expected money at a node, in kW.

    Args:
        site: the site; which of its days comes is not used.
        days: what is planned for.
        node: the hour, and the numbers of the days that may still come.
        state: the state before the hour.
        energies: size of the grid.
    """
    values = _values(site.foreseen(0), days, energies)
    starts, found = _successors(site)[state.running], []
    store_E = np.array([state.stored])
    for on, total_P, later in _choices(site, days, node, values, store_E, _NEVER, parts=100):
        for after, (money_P,) in later.items():
            if after in starts:
                best = int(np.argmin(money_P))
                money = float(money_P[best]) + starts[after]
                found.append((money, shares(site.units, on, float(total_P[best]))))
    return min(found)[1]


@lru_cache(maxsize=_KEPT)
def _values(site: OffGridSite, days: tuple[PossibleDay, ...], energies: int) -> Values:
    """Return the values of all nodes after the first hour."""
    store_E = np.linspace(site.floor, site.capacity, energies)
    runs = tuple(unit.hours + 1 for unit in site.units)
    extra_E = store_E - site.energy
    end_E = -np.where(extra_E > 0.0, site.price_of_extra, site.price_of_missing) * extra_E
    values: dict[Node, Floats] = {}
    successors = _successors(site)
    for hour in range(site.steps, 0, -1):
        for possible in _groups(days, range(len(days)), hour):
            if hour == site.steps:
                values[hour, possible] = np.broadcast_to(end_E[:, None, None], (energies, *runs))
                continue
            node_Eu = np.full((energies, *runs), np.inf)
            best = {
                after: money_EP.min(axis=1)
                for _, _, later in _choices(site, days, (hour, possible), values, store_E, _UNSAFE)
                for after, money_EP in later.items()
            }
            for before, starts in successors.items():
                money_AE = [best[after] + start for after, start in starts.items()]
                node_Eu[:, before[0], before[1]] = np.min(money_AE, axis=0)
            values[hour, possible] = node_Eu
    return values


def _choices(
    site: OffGridSite,
    days: Sequence[PossibleDay],
    node: Node,
    values: Values,
    store_E: Floats,
    unsafe: float,
    parts: int = 10,
) -> Iterator[tuple[Runs, Floats, dict[Runs, Floats]]]:
    """Yield sets of running units, their total powers, and by the runs after the hour the money.

    The money is expected, to the end, without that of starts; by energy and total power, where
    there are `parts` to a kW.
    """
    hour, possible = node
    weight = sum(days[day].chance for day in possible)
    for on in itertools.product((0, 1), repeat=len(site.units)):
        low = sum(unit.least for unit, runs in zip(site.units, on, strict=True) if runs)
        high = sum(unit.rating for unit, runs in zip(site.units, on, strict=True) if runs)
        total_P = np.union1d(np.arange(np.ceil(parts * low), parts * high) / parts, [low, high])
        afters = [
            after
            for after in itertools.product(*(range(unit.hours + 1) for unit in site.units))
            if tuple(map(bool, after)) == tuple(map(bool, on))
        ]
        chosen = tuple(np.array(afters).T)
        later_EPA: Floats = np.zeros((len(store_E), len(total_P), len(afters)))
        for group in _groups(days, possible, hour + 1):
            chance = sum(days[day].chance for day in group) / weight
            need = days[group[0]].load[hour] - days[group[0]].sun[hour]
            money_EP, after_EP = _hour(site, on, total_P, need, store_E, unsafe)
            value_EA = values[hour + 1, group][(slice(None), *chosen)]
            step = (site.capacity - site.floor) / (len(value_EA) - 1)
            place_EP = np.clip((after_EP - site.floor) / step, 0.0, len(value_EA) - 1.0)
            cell_EP = np.minimum(place_EP.astype(np.int64), len(value_EA) - 2)
            part_EP1 = (place_EP - cell_EP)[:, :, None]
            value_EPA = value_EA[cell_EP] * (1.0 - part_EP1) + value_EA[cell_EP + 1] * part_EP1
            later_EPA += chance * (money_EP[:, :, None] + value_EPA)
        yield on, total_P, {after: later_EPA[:, :, n] for n, after in enumerate(afters)}


def _hour(
    site: OffGridSite,
    on: Sequence[int],
    total_P: Floats,
    need: float,
    store_E: Floats,
    unsafe: float,
) -> tuple[Floats, Floats]:
    """Return the money of an hour without starts, and the energy after it, by energy and power."""
    running = [unit for unit, runs in zip(site.units, on, strict=True) if runs]
    high = sum(unit.rating for unit in running)
    store_E1 = store_E[:, None]
    safe_E1 = np.minimum(np.maximum(store_E1 - site.floor, 0.0), site.power)
    lacking_EP = np.clip(need - total_P - safe_E1, 0.0, high - total_P)
    total_EP = total_P + lacking_EP
    power_EP = total_EP - need
    given_EP = np.minimum(np.clip(-power_EP, 0.0, site.power), store_E1)
    room_E1 = np.minimum((site.capacity - store_E1) / site.efficiency, site.power)
    taken_EP = np.minimum(np.maximum(power_EP, 0.0), room_E1)
    unserved_EP = np.maximum(-power_EP - given_EP, 0.0)
    after_EP = store_E1 + site.efficiency * taken_EP - given_EP
    money_EP = site.wear * (given_EP + taken_EP) + (LOST_LOAD + unsafe) * unserved_EP
    money_EP += unsafe * np.maximum(site.floor - after_EP, 0.0)
    spare_EP = total_EP - sum(unit.least for unit in running)
    for unit in running:
        more_EP = np.minimum(spare_EP, unit.rating - unit.least)
        money_EP += unit.no_load + unit.fuel * (unit.least + more_EP)
        spare_EP = spare_EP - more_EP
    return money_EP, after_EP


def _groups(
    days: Sequence[PossibleDay], possible: Sequence[int], hour: int
) -> list[tuple[int, ...]]:
    """Return the days that cannot be told apart before an hour, in groups."""
    groups: dict[object, list[int]] = {}
    for day in possible:
        groups.setdefault((days[day].load[:hour], days[day].sun[:hour]), []).append(day)
    return list(map(tuple, groups.values()))


def _successors(site: OffGridSite) -> dict[Runs, dict[Runs, float]]:
    """Return by the runs before an hour those that may follow, with the money of starts."""
    big, small = map(_of_unit, site.units)
    return {
        (one, two): {
            (then, other): start + second
            for (then, start), (other, second) in itertools.product(
                big[one].items(), small[two].items()
            )
        }
        for one, two in itertools.product(big, small)
    }


def _of_unit(unit: Unit) -> dict[int, dict[int, float]]:
    """Return the same of one unit: it starts or rests, runs on as it must, or may stop."""
    must = {now: {now - 1: 0.0} for now in range(2, unit.hours + 1)}
    return {0: {0: 0.0, unit.hours: unit.start}, 1: {0: 0.0, 1: 0.0}} | must
