"""Days of reordering in the morning and picking after it, as they happen. No text, no scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.floor import Floor
from tokengym.envs.warehouse.orders import Order, Site, needs
from tokengym.envs.warehouse.shelf import Item, Shelf

Book = tuple[Order, ...]
"""The orders of one day; their times count from its morning."""


@dataclass(frozen=True)
class Shop:
    """What `full` is played with.

    Attributes:
        site: the site.
        items: what is kept.
        slots: where each item lies, one slot an item.
        books: the orders of every day.
    """

    site: Site
    items: tuple[Item, ...]
    slots: tuple[str, ...]
    books: tuple[Book, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the Shop itself."""
        return self

    def check(self) -> None:
        """Hold that every item has a slot of its own and every order asks for items.

        Raises:
            TaskError: if not.
        """
        if len(set(self.slots)) != len(self.items):
            raise TaskError(f"{len(self.items)} items need a slot each, got {list(self.slots)}")
        for book in self.books:
            if off := sorted(needs(book).keys() - set(self.slots)):
                raise TaskError(f"orders name the slots {off}, which hold no item")

    def penalty(self, order: Order) -> float:
        """Return what the units of an order cost if it is not shipped on its day."""
        return sum([self._lost[slot] * units for slot, units in order.lines])

    @cached_property
    def _lost(self) -> dict[str, float]:
        """Cost of a unit asked for and not shipped, by slot."""
        return {slot: item.model.lost for slot, item in zip(self.slots, self.items, strict=True)}


class Days:
    """The state of a shop: `open` a morning with a reorder, pick on `floor`, `close` the evening.

    Attributes:
        shop: what is played.
        shelves: stock by item.
        floor: today's picking; before the first `open`, the floor of no orders.
        day: number of days closed.
    """

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.shelves = [Shelf(item) for item in shop.items]
        self.floor = Floor(shop.site, ())
        self.day = 0
        self._banked = 0.0
        self._stock: dict[str, int] = {}

    @property
    def objective(self) -> float:
        """Value earned less walking, holding, lost sales and reorders, of all days closed."""
        return self._banked

    @property
    def over(self) -> bool:
        """Whether the last day is closed."""
        return self.day == len(self.shop.books)

    def open(self, units: Sequence[int]) -> None:
        """Place a reorder, `units` by item within their room, and start the day's picking."""
        shop = self.shop
        stock = self._stock = {}
        for slot, shelf, count in zip(shop.slots, self.shelves, units, strict=True):
            shelf.place(count)
            if count:
                self._banked -= shelf.item.model.fixed
            stock[slot] = shelf.on_hand
        self.floor = Floor(shop.site, shop.books[self.day], stock)

    def close(self) -> int:
        """Charge the day's costs and receive tomorrow's deliveries; return the units lost."""
        floor = self.floor
        banked = self._banked + floor.objective
        lost = 0
        for order in floor.open.values():
            banked -= self.shop.penalty(order)
            lost += order.units
        for slot, shelf in zip(self.shop.slots, self.shelves, strict=True):
            left = self._stock[slot]
            banked -= shelf.item.model.holding * left
            shelf.night(left)
        self._banked = banked
        self.day += 1
        return lost
