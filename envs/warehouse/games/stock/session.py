"""Keeping items in stock against random demand, one decision per review.

The objective is the expected cost of the decisions taken: by the value function of the optimal
policy, a decision's regret is how much it raises the expected cost of today and all days after. The
sum of regrets has the same mean as the realised cost above the optimal one, without the luck of the
demand drawn, so the optimal policy earns 1 on every path and no policy earns more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.game import Compiled, Form, Session
from tokengym.envs.warehouse.games.stock.model import Joint
from tokengym.envs.warehouse.games.stock.oracle import Solution
from tokengym.envs.warehouse.games.stock.rules import (
    Inventory,
    Item,
    bullwhip,
    read_groups,
    read_items,
    reorder,
)
from tokengym.envs.warehouse.grammar import REORDER_WORDS, read_reorder, reorder_nearness


@dataclass(frozen=True)
class Stretch:
    """A stretch of days.

    Attributes:
        items: what is kept.
        joint: what the items share; `None` for nothing.
        solutions: the value functions of items that are planned together, or of each.
        demand: units asked for, by item and day.
        late: whether an order placed then takes a day longer, by item and review.
    """

    items: tuple[Item, ...]
    joint: Joint | None
    solutions: tuple[Solution, ...]
    demand: tuple[tuple[int, ...], ...]
    late: tuple[tuple[bool, ...], ...]

    exact = True

    @property
    def turns(self) -> int:
        """Number of decisions."""
        return self.items[0].model.reviews

    @property
    def review(self) -> int:
        """Days between decisions."""
        return self.items[0].model.review


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Stretch:
    """Read a stretch of days from the two parts of a Task.

    Raises:
        TaskError: if outcomes do not fit the items.
    """
    items = read_items(instance)
    demand = tuple(tuple(map(int, path)) for path in answer["demand"])
    late = tuple(tuple(map(bool, path)) for path in answer["late"])
    days, reviews = items[0].model.days, items[0].model.reviews
    if [len(path) for path in demand] != [days] * len(items):
        raise TaskError(f"demand covers {days} days of {len(items)} items")
    if [len(path) for path in late] != [reviews] * len(items):
        raise TaskError(f"late orders cover {reviews} reviews of {len(items)} items")
    for item, path in zip(items, late, strict=True):
        if any(path) and not item.model.slow:
            raise TaskError(f"an order of {item.sku} is late, which no order of it can be")
    groups = read_groups(instance)
    joint = groups[0] if instance.get("shared") else None
    parts = [slice(None)] if joint else [slice(n, n + 1) for n in range(len(items))]
    return Stretch(items, joint, tuple(map(Solution.of, groups, parts)), demand, late)


class StockSession(Session[Stretch]):
    """A stretch of days in progress.

    Attributes:
        inventories: the inventory of each item.
    """

    end = ("The last day is over.",)

    def __init__(self, compiled: Compiled[Stretch]) -> None:
        super().__init__(compiled)
        self.inventories = [Inventory(item) for item in compiled.problem.items]
        self.form = Form(
            words=REORDER_WORDS,
            single_line=False,
            read=partial(read_reorder, items=len(self.inventories)),
            nearness=partial(reorder_nearness, items=len(self.inventories)),
            nothing=[],
        )
        self._regret = 0.0
        self._deliveries = 0

    @property
    def objective(self) -> float:
        """Minus the expected cost of the decisions so far if those to come are optimal."""
        return self.compiled.optimum - self._regret

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the days so far: realised cost, fill rate, bullwhip effect."""
        inventories, stretch = self.inventories, self.compiled.problem
        days = [day for inventory in inventories for day in inventory.days]
        cost, lost = sum(inventory.cost for inventory in inventories), sum(day.lost for day in days)
        asked = lost + sum(day.sold for day in days)
        if (joint := stretch.joint) is not None:
            cost += joint.delivery * self._deliveries
        if self.over():
            cost += sum(
                inventory.item.model.leftover * inventory.position for inventory in inventories
            )
        return {
            **super().metrics(),
            "total_cost": cost,
            "fill_rate": 1.0 - lost / asked if asked else 1.0,
            **bullwhip([inventory.days for inventory in inventories], stretch.review),
        }

    def best_orders(self) -> list[tuple[str, int]]:
        """Return the optimal order of every item."""
        solutions, names = (
            self.compiled.problem.solutions,
            [inventory.item.sku for inventory in self.inventories],
        )
        best = [solution.best_orders(self.turns, self.inventories) for solution in solutions]
        return list(zip(names, chain(*best), strict=True))

    def play(self, command: Sequence[tuple[str, int]]) -> list[str]:
        """Place orders and play the days to the next review."""
        stretch, review = self.compiled.problem, self.turns
        shared = None if stretch.joint is None else stretch.joint.room
        orders, refusals = reorder(self.inventories, command, shared)
        for solution in stretch.solutions:
            self._regret += solution.regret(review, self.inventories, orders)
        self._deliveries += any(orders)
        days = slice(review * stretch.review, (review + 1) * stretch.review)
        for number, (inventory, order) in enumerate(zip(self.inventories, orders, strict=True)):
            late = stretch.late[number][review]
            inventory.sell(order, stretch.demand[number][days], late=late)
        self.refused += bool(refusals)
        return [f"Refused: {'; '.join(refusals)}."] if refusals else []

    def state(self) -> list[str]:
        """Show the day, and by item what was sold, what is on hand and what is due."""
        review = self.compiled.problem.review
        sales = [
            (sum(day.sold for day in days), sum(day.lost for day in days))
            for days in (inventory.days[-review:] for inventory in self.inventories)
        ]
        return [self.compiled.texts.state(self.turns * review + 1, self.inventories, sales)]
