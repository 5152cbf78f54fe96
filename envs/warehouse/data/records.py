"""A user's own orders and sales, cut into windows that levels play."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.windows import Windows
from tokengym.envs.warehouse.generator import draw_item, site_of
from tokengym.envs.warehouse.layout import Layout
from tokengym.envs.warehouse.levels import Level, PickLevel, StockLevel
from tokengym.envs.warehouse.orders import Order

LEAST_HISTORY = 20
"""Periods before a window that its demand is estimated from, at least."""


@dataclass(frozen=True)
class OrderBook(Immutable):
    """Orders of a real site, by release.

    Attributes:
        name: file they come from, for refusals.
        layout: slots and walkways.
        stock: units by slot.
        orders: the orders, by release; the time unit is a minute, and a step takes one.
        lines: line of the file each order begins on.
        digest: name of the contents.
    """

    name: str
    layout: Layout
    stock: Mapping[str, int]
    orders: tuple[Order, ...]
    lines: tuple[int, ...]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Name the contents by their hash."""
        content = (self.layout, sorted(self.stock.items()), self.orders)
        object.__setattr__(self, "digest", _digest(content))

    def windows(self, level: Level) -> Windows:
        """Return the windows a level plays, by their first orders; later ones are held out.

        Raises:
            DataError: if the level does not pick, an order exceeds a trip, or windows are too few.
        """
        if not isinstance(level, PickLevel):
            raise DataError("orders are data for the levels that pick only")
        for order, line in zip(self.orders, self.lines, strict=True):
            if order.units > level.capacity:
                raise DataError(
                    f"{self.name}, line {line}: the order has {order.units} units, a trip of the "
                    f"level carries {level.capacity}"
                )
        size = level.orders[1]
        starts = range(0, len(self.orders) - size + 1, size)
        return Windows(starts, f"windows of {size} orders")

    def instance(self, _rng: np.random.Generator, level: Level, at: int) -> dict[str, Any]:
        """Return the window that begins at order `at`; its first release is time 0.

        At levels whose books are complete from the start, every order can be picked at once.
        """
        if not isinstance(level, PickLevel):
            raise DataError("orders are data for the levels that pick only")
        window = self.orders[at : at + level.orders[1]]
        first = window[0].release
        orders = []
        for number, order in enumerate(window, start=1):
            release = order.release - first if level.spread else 0
            times = {"release": release, "due": order.due - first}
            orders.append({**order.plain(), **times, "id": f"O{number}"})
        stock = {slot: self.stock[slot] for order in window for slot, _ in order.lines}
        site = site_of(level, self.layout).plain()
        return {"mode": "pick", "site": site, "orders": orders, "stock": stock}

    def outcomes(self, _at: int, _instance: Mapping[str, Any]) -> None:
        """Return `None`: a shift has no random outcomes."""


@dataclass(frozen=True)
class SalesHistory(Immutable):
    """Units asked for by item and period.

    Attributes:
        name: file they come from, for refusals.
        demand: units by article and period; every article has every period.
        digest: name of the contents.
    """

    name: str
    demand: Mapping[str, tuple[int, ...]]
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Name the contents by their hash."""
        object.__setattr__(self, "digest", _digest(sorted(self.demand.items())))

    def windows(self, level: Level) -> Windows:
        """Return the windows a level plays, by their first periods; later ones are held out.

        Raises:
            DataError: if the level does not keep stock, or articles or windows are too few.
        """
        if not isinstance(level, StockLevel):
            raise DataError("sales are data for the levels that keep stock only")
        if len(self.demand) < level.items:
            raise DataError(
                f"{self.name}: the level keeps {level.items} items, got {len(self.demand)}"
            )
        periods, size = len(next(iter(self.demand.values()))), level.reviews * level.review
        starts = range(LEAST_HISTORY, periods - size + 1, size)
        return Windows(starts, f"windows of {size} periods")

    def instance(self, rng: np.random.Generator, level: Level, at: int) -> dict[str, Any]:
        """Return the window that begins at period `at` for items and costs drawn.

        Demand is known to policies by its shares in all periods before the window.
        """
        if not isinstance(level, StockLevel):
            raise DataError("sales are data for the levels that keep stock only")
        articles = rng.permutation(sorted(self.demand))[: level.items].tolist()
        items = []
        for number, article in enumerate(articles, start=1):
            past = self.demand[article][:at]
            mean = float(np.mean(past))
            item = draw_item(rng, level, number, [mean] * level.reviews * level.review)
            items.append({**item, "demand": {"shares": _shares(past)}, "article": article})
        days = level.reviews * level.review
        return {"mode": "stock", "days": days, "review": level.review, "items": items}

    def outcomes(self, at: int, instance: Mapping[str, Any]) -> list[list[int]]:
        """Return the units asked for in the window, by item and period."""
        periods = slice(at, at + instance["days"])
        return [list(self.demand[item["article"]][periods]) for item in instance["items"]]


Records = OrderBook | SalesHistory


def _shares(past: Sequence[int]) -> list[float]:
    """Return the shares of 0, 1, 2, ... units in three decimals, as they are shown."""
    counts = np.bincount(past)
    # What is rounded off goes to the commonest, so that the shares sum to 1 and stay as shown.
    thousandths = np.floor(1000 * counts / len(past)).astype(np.int64)
    thousandths[counts.argmax()] += 1000 - thousandths.sum()
    return [int(share) / 1000 for share in thousandths]


def _digest(content: object) -> str:
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]
