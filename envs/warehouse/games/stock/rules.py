"""The rules of keeping stock: units on hand, due and room. No text, no scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.games.stock.model import Joint, StockModel, poisson
from tokengym.envs.warehouse.plain import scalars


@dataclass(frozen=True)
class Item(Immutable):
    """An article, its state at the start and what keeping it costs.

    Attributes:
        sku: its name in replies, `S1`, `S2` and so on.
        stock: units on hand at the start, `>= 0`.
        due: units arriving 1, 2, ..., longest - 1 days later.
        model: demand, lead time, costs and room.
        kind: how demand is known, see `of`.
    """

    sku: str
    stock: int
    due: tuple[int, ...]
    model: StockModel
    kind: str

    def __post_init__(self) -> None:
        """Refuse a start that does not fit."""
        model = self.model
        if len(self.due) != model.longest - 1 or min(self.stock, *self.due, 0) < 0:
            raise TaskError(
                f"{self.sku} needs stock >= 0 and {model.longest - 1} deliveries due, got "
                f"{self.stock} and {self.due}"
            )
        if self.stock + sum(self.due) > model.room:
            raise TaskError(
                f"{self.sku} has room for {model.room} units, got {self.stock} and {self.due}"
            )

    @classmethod
    def of(cls, data: Mapping[str, Any], review: int, days: int) -> Self:
        """Read an item from its plain form.

        Its `demand` is `{"poisson": [...]}` with the mean of every day, or `{"shares": [...]}` of
        0, 1, ... units on any day.

        Raises:
            TaskError: if it is no item.
        """
        ((kind, demand),) = data["demand"].items()
        if kind not in ("poisson", "shares"):
            raise TaskError(f"demand is 'poisson' or 'shares', got {kind!r}")
        if kind == "poisson":
            by_day = tuple(poisson(float(mean)) for mean in demand)
            if len(by_day) != days:
                raise TaskError(f"{days} days need as many means of demand, got {len(by_day)}")
        else:
            by_day = (tuple(map(float, demand)),) * days
        terms = scalars(StockModel, {**data, "review": review})
        model = StockModel(demand=by_day, **terms)
        due = tuple(map(int, data["due"]))
        return cls(str(data["sku"]), int(data["stock"]), due, model, kind)


@dataclass(frozen=True, slots=True)
class StockDay(Immutable):
    """A day that is over, in units.

    Attributes:
        on_hand: what could be sold.
        ordered: what was ordered in the morning.
        sold: what was sold.
        lost: what was asked for but not there.
    """

    on_hand: int
    ordered: int
    sold: int
    lost: int


class Inventory:
    """One item's inventory.

    Attributes:
        item: the item.
        on_hand: units that can be sold today.
        due: units arriving on the next days, the first tomorrow.
        days: the days over.
    """

    __slots__ = ("days", "due", "item", "on_hand")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.on_hand = item.stock
        self.due = list(item.due)
        self.days: list[StockDay] = []

    @property
    def position(self) -> int:
        """Units on hand and on order."""
        return self.on_hand + sum(self.due)

    @property
    def room(self) -> int:
        """Units that can still be ordered."""
        return self.item.model.room - self.position

    @property
    def cost(self) -> float:
        """Cost of the days over, without units left after the last one."""
        model = self.item.model
        return sum(
            model.holding * (day.on_hand - day.sold)
            + model.lost * day.lost
            + (model.fixed if day.ordered else 0.0)
            for day in self.days
        )

    def sell(self, order: int, asked: Sequence[int], *, late: bool) -> None:
        """Play days after ordering `order` units on the first, `0 <= order <= room`.

        Args:
            order: units to order.
            asked: units asked for by day.
            late: whether the order takes a day longer than the lead time; only where orders may.
        """
        for units in asked:
            self.due.append(0)
            self.due[self.item.model.lead - 1 + late] += order
            sold = min(units, self.on_hand)
            self.days.append(StockDay(self.on_hand, order, sold, units - sold))
            self.on_hand += self.due.pop(0) - sold
            order = 0


def reorder(
    inventories: Sequence[Inventory], lines: Sequence[tuple[str, int]], shared: int | None = None
) -> tuple[list[int], list[str]]:
    """Check the lines of a reorder against the room.

    Args:
        inventories: one an item.
        lines: item and units, each item at most once; those first have what room is shared first.
        shared: room of all items together; `None` for no limit.

    Returns:
        the units to place by item, 0 where a line was refused or missing, and the refusals.
    """
    numbers = {inventory.item.sku: at for at, inventory in enumerate(inventories)}
    units = [0] * len(inventories)
    refusals = []
    taken = sum(inventory.position for inventory in inventories)
    for sku, count in lines:
        number = numbers.get(sku)
        if number is None:
            refusals.append(f"there is no item {sku}")
        elif count > inventories[number].room:
            refusals.append(f"{sku} has room for {inventories[number].room} more")
        elif shared is not None and count > shared - sum(units) - taken:
            refusals.append(f"all items together have room for {shared - sum(units) - taken} more")
        else:
            units[number] = count
    return units, refusals


def bullwhip(articles: Sequence[Sequence[StockDay]], review: int = 1) -> dict[str, float]:
    """Return the bullwhip effect as a metric: the variance of what is ordered by that of demand.

    Args:
        articles: by article, the days over.
        review: days from one order to the next.

    Returns:
        its mean over the articles whose demand varies; empty if there is none.

    Source: Chen, Drezner, Ryan and Simchi-Levi, Management Science 46 (2000).
    """
    ratios = []
    for days in articles:
        flows = np.array([(day.ordered, day.sold + day.lost) for day in days])
        ordered, asked = flows.reshape(-1, review, 2).sum(axis=1).var(axis=0)
        if asked > 0.0:
            ratios.append(ordered / asked)
    return {"bullwhip": float(np.mean(ratios))} if ratios else {}


def read_items(instance: Mapping[str, Any]) -> tuple[Item, ...]:
    """Read the items of an instance.

    Raises:
        TaskError: if there are none or two share a name.
    """
    review, days = int(instance["review"]), int(instance["days"])
    items = tuple(Item.of(entry, review, days) for entry in instance["items"])
    if not items or len({item.sku for item in items}) != len(items):
        raise TaskError(f"items have different names, got {[item.sku for item in items]}")
    return items


def read_groups(instance: Mapping[str, Any]) -> tuple[Joint, ...]:
    """Read which items of an instance are planned together: all that share something, or none.

    Raises:
        TaskError: if they cannot be solved together, or their start exceeds what they share.
    """
    items, shared = read_items(instance), instance.get("shared")
    if shared is None:
        return tuple(Joint.alone(item.model) for item in items)
    models = tuple(item.model for item in items)
    joint = Joint(models, float(shared["delivery"]), int(shared["room"]))
    if sum(item.stock + sum(item.due) for item in items) > joint.room:
        raise TaskError(f"all items together have room for {joint.room} units at the start")
    return (joint,)
