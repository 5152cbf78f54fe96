"""The levels: the sizes and terms of the instances they draw. Times are whole time units."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar


@dataclass(frozen=True)
class PickLevel:
    """A level of picking.

    Attributes:
        turns: the most turns.
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
        walk_cost: cost of a step.
        clauses: whether three clauses are stated in words.
        values: least and greatest value of an order.
        restated: whether each Turn states the open orders again, with their walks.
    """

    turns: int
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
    clauses: bool = False
    values: tuple[int, int] = (4, 12)
    restated: bool = False

    mode: ClassVar[str] = "pick"


@dataclass(frozen=True)
class StockLevel:
    """A level of keeping stock.

    Attributes:
        items: number of items.
        reviews: number of decisions.
        leads: lead times in days.
        slow: probabilities that an order takes a day longer, where the lead time is one day.
        fixed: highest cost of placing an order.
        review: days between decisions.
        usual: least and greatest usual demand of a day.
        delivery: least and greatest cost of a delivery that the items share, with room; `None`
            where they share nothing.
    """

    items: int
    reviews: int
    leads: tuple[int, ...]
    slow: tuple[float, ...]
    fixed: int
    review: int = 1
    usual: tuple[float, float] = (1.0, 4.0)
    delivery: tuple[int, int] | None = None

    mode: ClassVar[str] = "stock"

    @property
    def turns(self) -> int:
        """The most turns: one for each decision."""
        return self.reviews


@dataclass(frozen=True)
class LeaseLevel:
    """A level of leasing.

    Attributes:
        bays: bays in all.
        months: number of decisions.
        kinds: types of customers.
        longest: months of the longest contract.
    """

    bays: int
    months: int
    kinds: int
    longest: int

    mode: ClassVar[str] = "lease"

    @property
    def turns(self) -> int:
        """The most turns: one for each decision."""
        return self.months


Level = PickLevel | StockLevel | LeaseLevel

LEVELS: Mapping[str, Level] = MappingProxyType(
    {
        "pick": PickLevel(12, (8, 8), 3, 2, 7, 5, 8, 14),
        "aisle": PickLevel(
            *(4, (4, 4), 1, 1, 2, 1, 9, 5), decay=12.0, walk_cost=0.1, values=(1, 9), restated=True
        ),
        "pick_clauses": PickLevel(12, (8, 8), 3, 2, 7, 5, 8, 14, clauses=True),
        "pick_online": PickLevel(24, (10, 10), 3, 2, 8, 5, 10, 13, spread=3, announced=False),
        "stock": StockLevel(2, 10, (1, 2), (0.0, 0.2, 0.4), 20),
        "stock_large": StockLevel(3, 8, (1,), (0.0,), 6, 2, usual=(0.3, 0.9), delivery=(5, 30)),
        "lease": LeaseLevel(8, 12, 4, 6),
    }
)
