"""Items and their inventory: units on hand, due and room. No text, no scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.stock_model import StockModel, poisson


@dataclass(frozen=True)
class Item(Immutable):
    """An article, its state at the start and what keeping it costs.

    Attributes:
        sku: its name in replies, `S1`, `S2` and so on.
        stock: units on hand at the start, `>= 0`.
        due: units arriving 1, 2, ..., lead - 1 days later.
        model: demand, lead time, costs and room.
        poisson: whether demand is known to be Poisson.
    """

    sku: str
    stock: int
    due: tuple[int, ...]
    model: StockModel
    poisson: bool

    def __post_init__(self) -> None:
        """Refuse a start that does not fit."""
        model = self.model
        if len(self.due) != model.lead - 1 or min(self.stock, *self.due, 0) < 0:
            raise TaskError(
                f"{self.sku} needs stock >= 0 and {model.lead - 1} deliveries due, got "
                f"{self.stock} and {self.due}"
            )
        if self.stock + sum(self.due) > model.room:
            raise TaskError(
                f"{self.sku} has room for {model.room} units, got {self.stock} and {self.due}"
            )

    @classmethod
    def of(cls, data: Mapping[str, Any], review: int) -> Self:
        """Read an item from its plain form.

        Its `demand` a day is `{"poisson": mean}`, `{"shares": [...]}` of 0, 1, ... units, or
        `{"about": mean}` where only the mean is known and rules of thumb take it as Poisson.

        Raises:
            TaskError: if it is no item.
        """
        ((kind, demand),) = data["demand"].items()
        if kind not in ("poisson", "shares", "about"):
            raise TaskError(f"demand is 'poisson', 'shares' or 'about', got {kind!r}")
        shares = demand if kind == "shares" else poisson(float(demand))
        model = StockModel(
            demand=tuple(map(float, shares)),
            lead=int(data["lead"]),
            review=review,
            holding=float(data["holding"]),
            lost=float(data["lost"]),
            fixed=float(data["fixed"]),
            room=int(data["room"]),
        )
        due = tuple(map(int, data["due"]))
        return cls(str(data["sku"]), int(data["stock"]), due, model, kind == "poisson")


class Inventory:
    """One item's inventory: played by review cycle (`sell`) or in parts (`place`, `end_day`).

    Attributes:
        item: the item.
        on_hand: units that can be sold today.
        due: units arriving on the next days, the first tomorrow.
        room: units that can still be ordered.
    """

    __slots__ = ("due", "item", "on_hand", "room")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.on_hand = item.stock
        self.due = list(item.due)
        self.room = item.model.room - item.stock - sum(item.due)

    @property
    def position(self) -> int:
        """Units on hand and on order."""
        return self.on_hand + sum(self.due)

    def sell(self, order: int, asked: Sequence[int]) -> tuple[int, int, int]:
        """Play days on the first of which `order` units are ordered, `0 <= order <= room`.

        Args:
            order: units to arrive after the lead time.
            asked: units asked for by day.

        Returns:
            units left in the evenings, units sold and units lost, summed over the days.
        """
        due, on_hand = self.due, self.on_hand
        self.room -= order
        left = lost = 0
        for units in asked:
            due.append(order)
            order = 0
            on_hand -= units
            if on_hand < 0:
                lost -= on_hand
                on_hand = 0
            left += on_hand
            on_hand += due.pop(0)
        sold = sum(asked) - lost
        self.on_hand = on_hand
        self.room += sold
        return left, sold, lost

    def place(self, units: int) -> None:
        """Order `units`, `0 <= units <= room`, to arrive after the lead time; 0 for none."""
        self.due.append(units)
        self.room -= units

    def end_day(self, left: int) -> None:
        """End the day with `left` units, no more than there were, and receive what is due."""
        self.room += self.on_hand - left
        self.on_hand = left + self.due.pop(0)


def reorder(
    inventories: Sequence[Inventory], lines: Sequence[tuple[str, int]]
) -> tuple[list[int], list[str]]:
    """Check the lines of a reorder against the room.

    Args:
        inventories: one an item.
        lines: item and units, each item at most once.

    Returns:
        the units to place by item, 0 where a line was refused or missing, and the refusals.
    """
    numbers = {}
    for at, inventory in enumerate(inventories):
        numbers[inventory.item.sku] = at
    units = [0] * len(inventories)
    refusals = []
    for sku, count in lines:
        number = numbers.get(sku)
        if number is None:
            refusals.append(f"there is no item {sku}")
        elif count > inventories[number].room:
            refusals.append(f"{sku} has room for {inventories[number].room} more")
        else:
            units[number] = count
    return units, refusals


def read_items(instance: Mapping[str, Any]) -> tuple[Item, ...]:
    """Read the items of an instance.

    Raises:
        TaskError: if there are none or two share a name.
    """
    items = tuple(Item.of(entry, int(instance["review"])) for entry in instance["items"])
    if not items or len({item.sku for item in items}) != len(items):
        raise TaskError(f"items have different names, got {[item.sku for item in items]}")
    return items
