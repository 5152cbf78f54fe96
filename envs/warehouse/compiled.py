"""Compiled Tasks: what an episode plays on and is scored against, one class a mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul
from types import MappingProxyType
from typing import Any, ClassVar, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.warehouse.days import Days, Shop, read_shop
from tokengym.envs.warehouse.inventory import Inventory, Item, read_items
from tokengym.envs.warehouse.orders import Order, Site, read_shift
from tokengym.envs.warehouse.prompt import full_opening, order_line, pick_opening, stock_opening
from tokengym.envs.warehouse.stock_model import StockModel

Table = Mapping[tuple[int, ...], Sequence[float]]
"""Cost-to-go: by what is due on the days after tomorrow, a row over what is on hand tomorrow."""


@dataclass(frozen=True)
class CompiledPick:
    """A shift compiled.

    Attributes:
        site: the site.
        orders: the book, by id.
        stock: units by slot, or `None` if slots never run out.
        reference: value of first come, first served, one order at a time.
        optimum: value of the best plan.
        plan: the best plan, as replies.
    """

    site: Site
    orders: tuple[Order, ...]
    stock: Mapping[str, int] | None
    reference: float
    optimum: float
    plan: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether a policy that sees what is shown can reach the optimum."""
        return self.site.announced

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Compile the two parts of a Task."""
        site, orders, stock = read_shift(instance)
        return cls(
            site,
            orders,
            stock,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=tuple(answer["plan"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        shown = [order for order in self.orders if self.site.announced or not order.release]
        return pick_opening(self.site, shown, len(self.orders))

    @cached_property
    def news(self) -> list[tuple[int, str]]:
        """Time and text of the release of orders not shown before, by time."""
        if self.site.announced:
            return []
        late = sorted([o for o in self.orders if o.release], key=lambda order: order.release)
        return [(order.release, f"New {order_line(order)}") for order in late]


@dataclass(frozen=True)
class Solution:
    """The value function of an item in the form a step reads.

    Attributes:
        average: optimal cost a day.
        at_review: cost-to-go on a review day, by what is due, then by what is on hand.
        next_day: the same on the day after a review day.
        left: by units on hand, the probabilities that 0, 1, ... are left in the evening.
        cost: expected cost of a day by units on hand.
        regrets: those asked for so far, by order, units on hand and what is due.
    """

    average: float
    at_review: Table
    next_day: Table
    left: tuple[tuple[float, ...], ...]
    cost: tuple[float, ...]
    regrets: dict[tuple[int, ...], float] = field(default_factory=dict, compare=False)

    def cost_of(self, inventory: Inventory, order: int) -> float:
        """Return the expected relative cost of ordering `order` units now and acting best after."""
        on_hand = inventory.on_hand
        arriving, *later = *inventory.due, order
        row = self.next_day[tuple(later)]
        # What is left in the evening pairs off with the row from what arrives on.
        follows: float = sum(map(mul, self.left[on_hand], row[arriving:]))
        fixed = inventory.item.model.fixed if order else 0.0
        return self.cost[on_hand] + fixed + follows - self.average

    def regret(self, inventory: Inventory, order: int) -> float:
        """Return by how much `order` raises the expected cost above the least, `>= 0`.

        The rollouts of a Task meet the same states, so what was worked out is kept.
        """
        state = (order, inventory.on_hand, *inventory.due)
        regret = self.regrets.get(state)
        if regret is None:
            best = self.at_review[state[2:]][inventory.on_hand]
            regret = self.regrets[state] = max(0.0, self.cost_of(inventory, order) - best)
        return regret

    def best_order(self, inventory: Inventory) -> int:
        """Return the order of the least expected cost."""
        return min(range(inventory.room + 1), key=lambda order: self.cost_of(inventory, order))


@dataclass(frozen=True)
class CompiledStock:
    """A stretch of days compiled.

    Attributes:
        items: what is kept.
        solutions: the value function of each item.
        demand: units asked for, by item and day.
        reviews: number of decisions.
        review: days between them.
        reference: minus the expected regret of the reference policy.
        optimum: minus the expected regret of the optimal policy, 0.
    """

    items: tuple[Item, ...]
    solutions: tuple[Solution, ...]
    demand: tuple[tuple[int, ...], ...]
    reviews: int
    review: int
    reference: float
    optimum: float

    exact: ClassVar[bool] = True

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Compile the two parts of a Task."""
        items = read_items(instance)
        demand = tuple(tuple(map(int, path)) for path in answer["demand"])
        reviews, review = int(instance["reviews"]), int(instance["review"])
        if [len(path) for path in demand] != [reviews * review] * len(items):
            raise TaskError(f"demand covers {reviews * review} days of {len(items)} items")
        solutions = zip(items, answer["solutions"], strict=True)
        return cls(
            items,
            tuple(_solution(item.model, entry) for item, entry in solutions),
            demand,
            reviews,
            review,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        inventories = [Inventory(item) for item in self.items]
        days = self.reviews * self.review
        return stock_opening(self.items, days, self.review, inventories)

    @cached_property
    def asked(self) -> list[list[tuple[int, ...]]]:
        """Units asked for by review, item and day of the review cycle."""
        days = range(0, self.reviews * self.review, self.review)
        return [[path[day : day + self.review] for path in self.demand] for day in days]


@dataclass(frozen=True)
class CompiledFull:
    """Days of a shop compiled.

    Attributes:
        shop: the shop and all its orders.
        values: least and greatest value of an order.
        reference: what lean reorders and first come, first served achieve.
        optimum: an upper bound of what any policy achieves.
        plan: a plan made in hindsight, as replies.
    """

    shop: Shop
    values: tuple[float, float]
    reference: float
    optimum: float
    plan: tuple[str, ...]

    exact: ClassVar[bool] = False

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Compile the two parts of a Task."""
        low, high = instance["book"]["values"]
        if len(answer["books"]) != int(instance["days"]):
            raise TaskError(f"{instance['days']} days need as many books of orders")
        return cls(
            shop=read_shop(instance, answer["books"]),
            values=(float(low), float(high)),
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=tuple(answer["plan"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        return full_opening(self.shop, self.values, Days(self.shop).inventories)

    @cached_property
    def turns(self) -> int:
        """Most decisions there can be: every day two more than it has orders."""
        return sum(len(book) + 2 for book in self.shop.books)

    @cached_property
    def book_texts(self) -> list[str]:
        """The text of the orders of each day."""
        return [
            "\n".join(["Orders", *map(order_line, book)]) if book else "No orders today."
            for book in self.shop.books
        ]


CompiledTask = CompiledPick | CompiledStock | CompiledFull

MODES: Mapping[str, type[CompiledPick] | type[CompiledStock] | type[CompiledFull]] = (
    MappingProxyType({"pick": CompiledPick, "stock": CompiledStock, "full": CompiledFull})
)


def compile_task(task: Task) -> CompiledTask:
    """Compile a Task of any mode.

    Raises:
        TaskError, LookupError, TypeError, ValueError, AttributeError: if the Task is damaged.
    """
    return MODES[task.instance["mode"]].of(task.instance, task.answer)


def _solution(model: StockModel, entry: Mapping[str, Any]) -> Solution:
    """Read a solution as `solve` wrote it."""
    at_review = _table(entry["at_review"])
    next_day = at_review if entry["next_day"] is None else _table(entry["next_day"])
    left = tuple(tuple(row[: x + 1]) for x, row in enumerate(model.left.tolist()))
    return Solution(float(entry["average"]), at_review, next_day, left, tuple(model.cost.tolist()))


def _table(rows: Mapping[str, Sequence[float]]) -> Table:
    return {
        tuple(int(units) for units in due.split(",") if units): tuple(row)
        for due, row in rows.items()
    }
