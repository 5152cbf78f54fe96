"""The levels: plant, length, uncertainty, and devices besides a battery."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class EnergyLevel:
    """One level.

    Attributes:
        steps: number of steps.
        minutes: length of a step.
        begins: hours of the day at which the first step may begin, first and last.
        house: whether the home has a heated house, which must stay in its comfort band.
        demand_error: mean absolute forecast error of the demand, a share of it, at no lead and per
            step of lead.
        sun_error: the same for the sun.
        outside_error: the same for the temperature outside of a house, in K.
        correlation: of the news that forecasts get at one lead for two steps in a row.
        updates: how many steps ahead each turn shows fresh forecasts.
        history: how many steps before the start are shown.
        outages: chance that an hour begins an outage; a storm multiplies it.
        reserve: range of the reserve's two levels, shares of the capacity: calm, then guarded.
        leak: share of the battery's energy lost per hour.
        days: how many days may come to an off-grid site; 0 for other plants.
        car: whether there is a car.
        least_charging: kW below which the car is off.
        spike: by how many mean prices some prices are higher, which nobody foresees.
        spike_chance: probability that a step in the evening has such a price.
        leaving: probability that the car leaves before its time after a step at home.
        roof: range of the peak power of the roof, kW.
        day_ahead: whether prices are those of the day-ahead market, not a time-of-use tariff.
        demand_charge: range of the money per kW of the highest power bought in a step.
    """

    steps: int
    minutes: int = 60
    begins: tuple[int, int] = (0, 23)
    house: bool = False
    demand_error: tuple[float, float] = (0.02, 0.01)
    sun_error: tuple[float, float] = (0.05, 0.025)
    outside_error: tuple[float, float] = (0.3, 0.07)
    correlation: float = 0.0
    updates: int = 2
    history: int = 3
    outages: float = 0.0
    reserve: tuple[tuple[float, float], tuple[float, float]] = ((0.1, 0.3), (0.3, 0.6))
    leak: float = 0.0
    days: int = 0
    car: bool = False
    least_charging: float = 1.4
    spike: float = 0.0
    spike_chance: float = 0.0
    leaving: float = 0.0
    roof: tuple[float, float] = (2.4, 6.0)
    day_ahead: bool = False
    demand_charge: tuple[float, float] = (0.0, 0.0)


LEVELS: Mapping[str, EnergyLevel] = MappingProxyType(
    {
        "small": EnergyLevel(12, begins=(6, 12), updates=0, history=0),
        "day": EnergyLevel(24),
        "soma": EnergyLevel(96, minutes=15, updates=4),
        "outages": EnergyLevel(24, outages=0.03, reserve=((0.3, 0.4), (0.4, 0.6))),
        "commit": EnergyLevel(24, begins=(4, 8), days=4),
        "commit_6": EnergyLevel(24, begins=(4, 8), days=6),
        "operations": EnergyLevel(
            24,
            begins=(12, 16),
            updates=6,
            car=True,
            leaving=0.08,
            spike=3.0,
            spike_chance=0.15,
            roof=(0.5, 1.5),
            demand_error=(0.05, 0.02),
            sun_error=(0.1, 0.03),
            correlation=0.9,
        ),
        "household": EnergyLevel(
            24,
            begins=(12, 16),
            house=True,
            car=True,
            least_charging=0.0,
            day_ahead=True,
            demand_charge=(0.15, 0.4),
            reserve=((0.0, 0.0), (0.0, 0.0)),
            updates=4,
            demand_error=(0.2, 0.0087),
            sun_error=(0.2, 0.0087),
            correlation=0.8,
        ),
    }
)
