"""A user's own orders and sales, cut into windows that levels play."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tokengym.envs.core.errors import DataError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.seeding import SPLITS
from tokengym.envs.core.split_windows import Windows
from tokengym.envs.intake.report import IntakeReport, group_dropped
from tokengym.envs.intake.tables import Source
from tokengym.envs.warehouse.data.columns import Refusal, quote_refusals
from tokengym.envs.warehouse.games.picking.generator import site_of
from tokengym.envs.warehouse.games.picking.orders import Order
from tokengym.envs.warehouse.games.stock.generator import draw_item, instance_of
from tokengym.envs.warehouse.layout import Layout
from tokengym.envs.warehouse.levels import PickLevel, StockLevel

LEAST_HISTORY = 20
"""Periods before a window that its demand is estimated from, at least."""
_LONGEST = 24 * 60
"""Minutes between the first release of a window and its last one, where releases count."""


class Entry(NamedTuple):
    """The data of one Task.

    Attributes:
        start: the first order or period of its window.
        article: the article that it is about, where a window has one Task an article.
    """

    start: int
    article: str = ""


Entries = Mapping[str, Sequence[Entry]]
"""The entries of a level by split."""


@dataclass(frozen=True)
class WarehouseRecords(Immutable, ABC):
    """A user's data, whatever files they came in.

    Attributes:
        name: file or folder they come from, for refusals.
        refused: what the reader left out.
        read: rows read.
        notes: what was understood, a sentence each.
    """

    name: str = field(compare=False)
    refused: tuple[Refusal, ...] = field(default=(), compare=False, kw_only=True)
    read: int = field(default=0, compare=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), compare=False, kw_only=True)

    mode: ClassVar[str]
    """The game that is played on them."""
    purpose: ClassVar[str]
    """Game that the data are for."""

    @cached_property
    def digest(self) -> str:
        """Name of the contents: the beginning of their hash."""
        content = [getattr(self, each.name) for each in fields(self) if each.compare]
        return hashlib.sha256(repr(content).encode()).hexdigest()[:12]

    def report(self) -> IntakeReport:
        """Return the report on the files."""
        refused = []
        for rows, reason in self.refused:
            place, found, why = reason.partition(": ")
            refused.append((rows, why if found else reason, place))
        return IntakeReport(
            {Path(self.name).name: self.read},
            group_dropped(refused),
            notes=self.notes,
            every=tuple(reason for _, reason in self.refused),
        )

    @abstractmethod
    def entries(self, level: Any) -> Entries:
        """Return the data of a level's Tasks, by split.

        Raises:
            DataError: if a split would be empty.
        """

    @abstractmethod
    def instance(self, rng: np.random.Generator, level: Any, entry: Entry) -> dict[str, Any]:
        """Return the instance of an entry; what the data lack is drawn."""

    def outcomes(self, _at: int, _instance: Mapping[str, Any]) -> Any:
        """Return what happens in an entry that starts at `at`; `None` to draw it."""
        return None


@dataclass(frozen=True)
class OrderBook(WarehouseRecords):
    """Orders of a real site, by release.

    Attributes:
        layout: slots and walkways.
        stock: units by slot.
        orders: the orders, by release; the time unit is a minute, and a step takes one. Those
            larger than a trip are split where they are played.
    """

    layout: Layout
    stock: Mapping[str, int]
    orders: tuple[Order, ...]

    mode: ClassVar[str] = "pick"
    purpose: ClassVar[str] = "orders are data for the levels that pick only"
    _trips: dict[int, tuple[Order, ...]] = field(default_factory=dict, init=False, compare=False)

    def entries(self, level: PickLevel) -> Entries:
        """Return the windows a level plays, by their first orders; later ones are held out.

        Where orders are released one by one, no window spans more than a day: orders that no
        window can begin with are left out.

        Raises:
            DataError: if windows are too few.
        """
        orders, size = self.trips(level.capacity), level.orders[1]
        starts, at = [], 0
        while at + size <= len(orders):
            if not level.spread or orders[at + size - 1].release - orders[at].release <= _LONGEST:
                starts.append(at)
                at += size
            else:
                at += 1
        return _windows(starts, f"windows of {size} orders")

    def trips(self, capacity: int) -> tuple[Order, ...]:
        """Return the orders, each one larger than a trip as several with a share of its value."""
        if capacity not in self._trips:
            parts = [part for order in self.orders for part in _split(order, capacity)]
            self._trips[capacity] = tuple(parts)
        return self._trips[capacity]

    def instance(self, rng: np.random.Generator, level: PickLevel, entry: Entry) -> dict[str, Any]:
        """Return the window of an entry; its first release is time 0.

        At levels whose books are complete from the start, every order can be picked at once.
        """
        window = self.trips(level.capacity)[entry.start : entry.start + level.orders[1]]
        first = window[0].release
        orders = []
        for number, order in enumerate(window, start=1):
            release = order.release - first if level.spread else 0
            times = {"release": release, "due": order.due - first}
            orders.append({**order.plain(), **times, "id": f"O{number}"})
        stock = {slot: self.stock[slot] for order in window for slot, _ in order.lines}
        site = site_of(level, self.layout).plain()
        return {"mode": "pick", "site": site, "orders": orders, "stock": stock}


@dataclass(frozen=True)
class SalesHistory(WarehouseRecords):
    """Units asked for by item and period.

    Attributes:
        demand: units by article and period; every article has every period.
    """

    demand: Mapping[str, tuple[int, ...]]

    mode: ClassVar[str] = "stock"
    purpose: ClassVar[str] = "sales are data for the levels that keep stock only"

    def entries(self, level: StockLevel) -> Entries:
        """Return the windows a level plays by article; later periods are held out.

        Where items share nothing, there may be fewer articles than the level has items.

        Raises:
            DataError: if articles or windows are too few.
        """
        if level.delivery is not None and len(self.demand) < level.items:
            raise DataError(
                f"{self.name}: the level keeps {level.items} items, got {len(self.demand)}"
            )
        periods, size = len(next(iter(self.demand.values()))), level.reviews * level.review
        starts = range(LEAST_HISTORY, periods - size + 1, size)
        return _windows(starts, f"windows of {size} periods", sorted(self.demand))

    def instance(self, rng: np.random.Generator, level: StockLevel, entry: Entry) -> dict[str, Any]:
        """Return the window of an entry: its article, with others and costs drawn.

        Demand is known to policies by its shares in all periods before the window.
        """
        others = [article for article in sorted(self.demand) if article != entry.article]
        articles = [entry.article, *rng.permutation(others)[: level.items - 1].tolist()]
        items = []
        for number, article in enumerate(articles, start=1):
            past = self.demand[article][: entry.start]
            mean = float(np.mean(past))
            item = draw_item(rng, level, number, [mean] * level.reviews * level.review)
            items.append({**item, "demand": {"shares": _shares(past)}, "article": article})
        return instance_of(rng, level, items)

    def outcomes(self, at: int, instance: Mapping[str, Any]) -> list[list[int]]:
        """Return the units asked for in the window, by item and period."""
        periods = slice(at, at + instance["days"])
        return [list(self.demand[item["article"]][periods]) for item in instance["items"]]


def _windows(starts: Sequence[int], kind: str, articles: Sequence[str] = ("",)) -> Entries:
    """Return the entries of windows by split, see `Windows`; each has one an article.

    Raises:
        DataError: if they are fewer than the splits.
    """
    entries: dict[str, list[Entry]] = {split: [] for split in SPLITS}
    for start, split in Windows(starts, kind).items():
        entries[split] += [Entry(start, article) for article in articles]
    return entries


def refuse_all(path: Source, what: str, refused: Sequence[Refusal]) -> str:
    """Say that a file or folder has nothing usable, with the reasons."""
    if not refused:
        return f"{path}: there is no {what}"
    return f"{path}: no {what} is left: {quote_refusals(refused)}"


def _split(order: Order, capacity: int) -> Iterator[Order]:
    """Split an order into as few as a trip can carry, its value shared out by units, in cents."""
    if order.units <= capacity:
        yield order
        return
    parts: list[dict[str, int]] = [{}]
    for slot, units in order.lines:
        left = units
        while left:
            if sum(parts[-1].values()) == capacity:
                parts.append({})
            taken = min(left, capacity - sum(parts[-1].values()))
            parts[-1][slot] = taken
            left -= taken
    worth = order.value
    for number, lines in enumerate(parts, start=1):
        units = sum(lines.values())
        value = worth if number == len(parts) else round(order.value * units / order.units, 2)
        worth = round(worth - value, 9)
        yield replace(order, value=value, lines=tuple(lines.items()), units=units)


def _shares(past: Sequence[int]) -> list[float]:
    """Return the shares of 0, 1, 2, ... units in three decimals, as they are shown."""
    counts = np.bincount(past)
    # The rounding error goes to the commonest, so that the shares sum to 1 and stay as shown.
    thousandths = np.floor(1000 * counts / len(past)).astype(np.int64)
    thousandths[counts.argmax()] += 1000 - thousandths.sum()
    return [int(share) / 1000 for share in thousandths]
