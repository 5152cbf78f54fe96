"""Days of reordering in the morning and picking after it, as they happen. No text, no scores."""

from collections.abc import Sequence
from typing import NamedTuple

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.floor import Floor
from tokengym.envs.warehouse.orders import Order, Site, needs
from tokengym.envs.warehouse.shelf import Item, Shelf

Book = tuple[Order, ...]
"""The orders of one day; their times count from its morning."""


class Shop(NamedTuple):
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
        lost = {slot: item.model.lost for slot, item in zip(self.slots, self.items, strict=True)}
        return sum(lost[slot] * units for slot, units in order.lines)


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
        for shelf, count in zip(self.shelves, units, strict=True):
            shelf.place(count)
            if count:
                self._banked -= shelf.item.model.fixed
        stock = dict(zip(self.shop.slots, [shelf.on_hand for shelf in self.shelves], strict=True))
        self.floor = Floor(self.shop.site, self.shop.books[self.day], stock)

    def close(self) -> int:
        """Charge the day's costs and receive tomorrow's deliveries; return the units lost."""
        floor = self.floor
        self._banked += floor.objective
        lost = 0
        for order in floor.open.values():
            self._banked -= self.shop.penalty(order)
            lost += order.units
        for slot, shelf in zip(self.shop.slots, self.shelves, strict=True):
            if floor.stock is not None:
                shelf.take(shelf.on_hand - floor.stock[slot])
            self._banked -= shelf.item.model.holding * shelf.on_hand
            shelf.night()
        self.day += 1
        return lost
