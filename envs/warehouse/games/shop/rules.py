"""The rules of a shop: reorders in the morning, picking after them. No text, no scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.games.picking.orders import Order, Site, needs, read_orders
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.stock.rules import Inventory, Item, read_items
from tokengym.envs.warehouse.layout import slot_name

Book = tuple[Order, ...]
"""The orders of one day; their times count from its morning."""


@dataclass(frozen=True)
class Shop(Immutable):
    """A shop with its orders of every day: what is played.

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

    def __post_init__(self) -> None:
        """Check that every item has its own slot and every order asks for items."""
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
    """The state of a shop: `open` a morning with a reorder, do the `picking`, `close` the evening.

    Attributes:
        shop: what is played.
        inventories: inventory by item.
        picking: today's picking; before the first `open`, that of no orders.
        day: number of days closed.
        objective: value earned less walking, holding, lost sales and reorders, of those days.
    """

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.inventories = [Inventory(item) for item in shop.items]
        self.picking = PickingState(shop.site, ())
        self.day = 0
        self.objective = 0.0
        self._stock: dict[str, int] = {}

    @property
    def over(self) -> bool:
        """Whether the last day is closed."""
        return self.day == len(self.shop.books)

    def open(self, units: Sequence[int]) -> None:
        """Place a reorder, `units` by item within their room, and start the day's picking."""
        shop = self.shop
        stock = self._stock = {}
        for slot, inventory, count in zip(shop.slots, self.inventories, units, strict=True):
            inventory.place(count)
            self.objective -= inventory.item.model.fixed * (count > 0)
            stock[slot] = inventory.on_hand
        self.picking = PickingState(shop.site, shop.books[self.day], stock)

    def close(self) -> int:
        """Charge the day's costs and receive tomorrow's deliveries; return the units lost."""
        picking, unshipped = self.picking, list(self.picking.open.values())
        self.objective += picking.objective - sum(map(self.shop.penalty, unshipped))
        lost = needs(unshipped)
        for slot, inventory in zip(self.shop.slots, self.inventories, strict=True):
            left = self._stock[slot]
            self.objective -= inventory.item.model.holding * left
            inventory.end_day(left, lost.get(slot, 0))
        self.day += 1
        return sum(lost.values())


def read_shop(instance: Mapping[str, Any], books: Sequence[Sequence[Mapping[str, Any]]]) -> Shop:
    """Read a shop from an instance and the orders of its days.

    Raises:
        TaskError: if an item lacks a slot, or an order cannot be picked.
    """
    site = Site.of(instance["site"])
    items = read_items(instance)
    slots = tuple(slot_name(entry["slot"]) for entry in instance["items"])
    if off := [slot for slot in slots if slot not in site.walks.number]:
        raise TaskError(f"items lie in slots that the layout lacks: {off}")
    return Shop(site, items, slots, tuple(read_orders(book, site) for book in books))
