"""The levels: the sizes and terms of the instances they draw. Times are whole time units."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class PickLevel:
    """A level of `pick`.

    Attributes:
        orders: fewest and most orders.
        lines: most lines of an order.
        units: most units of a line.
        capacity: units of a trip.
        aisles: number of aisles.
        rows: slots in an aisle.
        due: latest due date per order of the book; due dates lie between half a lone trip and this.
        decay: time in which a late order's value falls to 1/e.
        spread: releases lie in the first `spread` time units per order; 0 for none.
        announced: whether orders are shown before their release.
    """

    orders: tuple[int, int]
    lines: int
    units: int
    capacity: int
    aisles: int
    rows: int
    due: int
    decay: float = 30.0
    spread: int = 0
    announced: bool = True
    walk_cost: float = 0.02


@dataclass(frozen=True)
class StockLevel:
    """A level of `stock`.

    Attributes:
        items: number of items.
        reviews: number of decisions.
        leads: lead times in days.
        slow: probabilities that an order takes a day longer, where the lead time is one day.
        fixed: highest cost of placing an order.
        review: days between decisions.
    """

    items: int
    reviews: int
    leads: tuple[int, ...]
    slow: tuple[float, ...]
    fixed: int
    review: int = 1


@dataclass(frozen=True)
class FullLevel:
    """A level of `full`.

    Attributes:
        days: number of days.
        items: number of items, each with one slot.
        orders: fewest and most orders of a day.
        leads: lead times in days.
        pickers: people picking at the same time.
        aisles: number of aisles.
        rows: slots in an aisle.
        due: latest due date of an order.
        capacity: units of a trip.
        holding: cost of a unit left in the evening.
    """

    days: int
    items: int
    orders: tuple[int, int]
    leads: tuple[int, ...]
    pickers: int
    aisles: int
    rows: int
    due: int
    capacity: int = 6
    holding: float = 0.2


@dataclass(frozen=True)
class SupplyLevel:
    """A level of `supply`: a lead-time setting of InventoryBench.

    Attributes:
        promised: periods from order to arrival that the supplier promises.
        leads: lead times, all equally likely; `None` for an order that never arrives.
        periods: number of decisions.
        profits: what a unit sold earns, of which one is drawn; a unit left costs 1.
    """

    promised: int
    leads: tuple[int | None, ...]
    periods: int = 50
    profits: tuple[int, ...] = (1, 4, 19)

    @property
    def reliable(self) -> bool:
        """Whether every order arrives as promised."""
        return self.leads == (self.promised,)


@dataclass(frozen=True)
class LeaseLevel:
    """A level of `lease`.

    Attributes:
        bays: bays in all.
        months: number of decisions.
        kinds: kinds of customers.
        longest: months of the longest contract.
    """

    bays: int
    months: int
    kinds: int
    longest: int


Level = PickLevel | StockLevel | FullLevel | SupplyLevel | LeaseLevel

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "pick_small": PickLevel((3, 4), 2, 1, 3, 3, 5, 10, decay=20.0),
        "pick": PickLevel((8, 8), 2, 2, 6, 4, 8, 10),
        "pick_large": PickLevel((10, 12), 2, 2, 8, 5, 10, 9, spread=5),
        "pick_online": PickLevel((10, 10), 2, 2, 8, 5, 10, 9, spread=5, announced=False),
        "stock_small": StockLevel(1, 8, (1,), (0.0,), 12),
        "stock": StockLevel(2, 10, (1, 2), (0.0, 0.2, 0.4), 20),
        "stock_large": StockLevel(3, 8, (1, 2), (0.2, 0.4, 0.6), 40, review=2),
        "inventory_0": SupplyLevel(0, (0,)),
        "inventory_4": SupplyLevel(4, (4,)),
        "inventory_lost": SupplyLevel(2, (1, 2, 3, None)),
        "lease_small": LeaseLevel(4, 8, 3, 4),
        "lease": LeaseLevel(8, 12, 4, 6),
        "full": FullLevel(3, 5, (3, 4), (1,), 1, 4, 6, 40),
        "full_pickers": FullLevel(4, 6, (4, 5), (1, 2), 2, 4, 8, 30),
        "full_volatile": FullLevel(4, 6, (1, 6), (2,), 2, 4, 8, 30, holding=1.0),
    }
)
