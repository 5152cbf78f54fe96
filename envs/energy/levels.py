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
        house: whether the home has a heated house, which must stay in its comfort band, and a car,
            and pays day-ahead prices and a demand charge.
        demand_error: mean absolute forecast error of the demand, a share of it, at no lead and per
            step of lead.
        sun_error: the same for the sun.
        correlation: of the news that forecasts get at one lead for two steps in a row.
        updates: how many steps ahead each turn shows fresh forecasts.
        history: how many steps before the start are shown.
        outages: chance that an hour begins an outage; a storm multiplies it.
        reserve: range of the reserve's two levels, shares of the capacity: calm, then guarded.
        days: how many days may come to an off-grid site; 0 for other plants.
    """

    steps: int
    minutes: int = 60
    begins: tuple[int, int] = (0, 23)
    house: bool = False
    demand_error: tuple[float, float] = (0.02, 0.01)
    sun_error: tuple[float, float] = (0.05, 0.025)
    correlation: float = 0.0
    updates: int = 2
    history: int = 3
    outages: float = 0.0
    reserve: tuple[tuple[float, float], tuple[float, float]] = ((0.1, 0.3), (0.3, 0.6))
    days: int = 0


LEVELS: Mapping[str, EnergyLevel] = MappingProxyType(
    {
        "small": EnergyLevel(12, begins=(6, 12), updates=0, history=0),
        "evening": EnergyLevel(4, begins=(13, 17), updates=0, history=0),
        "day": EnergyLevel(24),
        "soma": EnergyLevel(96, minutes=15, updates=4),
        "outages": EnergyLevel(24, outages=0.03, reserve=((0.3, 0.4), (0.4, 0.6))),
        "commit": EnergyLevel(24, begins=(4, 8), days=4),
        "commit_6": EnergyLevel(24, begins=(4, 8), days=6),
        "household": EnergyLevel(
            24,
            begins=(12, 16),
            house=True,
            reserve=((0.0, 0.0), (0.0, 0.0)),
            updates=4,
            demand_error=(0.2, 0.0087),
            sun_error=(0.2, 0.0087),
            correlation=0.8,
        ),
    }
)
