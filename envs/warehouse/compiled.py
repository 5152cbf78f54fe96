"""Compiled Tasks: what an episode plays on and is scored against, one class per mode."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.task import Task
from tokengym.envs.warehouse.days import Days, Shop, read_shop
from tokengym.envs.warehouse.inventory import Inventory, Item, read_items
from tokengym.envs.warehouse.lease_session import CompiledLease
from tokengym.envs.warehouse.oracle.stock import Values, solve
from tokengym.envs.warehouse.orders import Order, Site, read_shift
from tokengym.envs.warehouse.prompt import PickTerms, Prompt, ShopTerms, order_line
from tokengym.envs.warehouse.sentences import FullPrompt
from tokengym.envs.warehouse.stock_model import StockModel
from tokengym.envs.warehouse.supply_session import CompiledSupply
from tokengym.envs.warehouse.terse import TersePrompt

_SLACK = 1e-9
"""Orders whose expected costs differ by less are equal: rounding decides nothing."""


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
        prompt: writes the texts.
        replies: most replies.
    """

    site: Site
    orders: tuple[Order, ...]
    stock: Mapping[str, int] | None
    reference: float
    optimum: float
    plan: tuple[str, ...]
    prompt: Prompt
    replies: int

    @property
    def exact(self) -> bool:
        """Whether a policy that sees what is shown can reach the optimum."""
        return self.site.announced

    @classmethod
    def of(
        cls, instance: Mapping[str, Any], answer: Mapping[str, Any], prompt: Prompt, replies: int
    ) -> Self:
        """Compile the two parts of a Task.

        Raises:
            TaskError: if the best plan takes more than `replies`.
        """
        plan = tuple(answer["plan"])
        if len(plan) > replies:
            raise TaskError(f"the best plan takes {len(plan)} turns, the level {replies}")
        site, orders, stock = read_shift(instance)
        return cls(
            site,
            orders,
            stock,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=plan,
            prompt=prompt,
            replies=replies,
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        shown = [order for order in self.orders if self.site.announced or not order.release]
        stock = None if self.stock is None else dict(self.stock)
        terms = PickTerms(self.site, shown, len(self.orders), stock, self.replies)
        return self.prompt.pick_opening(terms)

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
        model: the item.
        values: expected costs of the optimal policy.
    """

    model: StockModel
    values: Values
    _costs: dict[tuple[int, ...], list[float]] = field(default_factory=dict, compare=False)

    def costs(self, review: int, inventory: Inventory) -> list[float]:
        """Return the expected cost from a review to the end by order, acting best after it.

        The rollouts of a Task meet the same states, so what was worked out is kept.
        """
        state = (review, inventory.on_hand, *inventory.due)
        costs = self._costs.get(state)
        if costs is None:
            costs = self._costs[state] = [
                self._cost(review, inventory, order) for order in range(inventory.room + 1)
            ]
        return costs

    def _cost(self, review: int, inventory: Inventory, order: int) -> float:
        model, on_hand = self.model, inventory.on_hand
        day = review * model.review
        cost = float(model.cost[day, on_hand]) + (model.fixed if order else 0.0)
        for chance, late in ((1.0 - model.slow, 0), (model.slow, 1)):
            if chance:
                due = [*inventory.due, 0]
                due[model.lead - 1 + late] += order
                arriving, *rest = due
                follows = self.values.next_day[review]
                row = follows[(slice(arriving, arriving + on_hand + 1), *rest)]
                cost += chance * float(model.left[day, on_hand, : on_hand + 1] @ row)
        return cost

    def regret(self, review: int, inventory: Inventory, order: int) -> float:
        """Return by how much `order` raises the expected cost above the least, `>= 0`."""
        costs = self.costs(review, inventory)
        return costs[order] - min(costs)

    def best_order(self, review: int, inventory: Inventory) -> int:
        """Return the order of the least expected cost, the smallest of equals."""
        costs = self.costs(review, inventory)
        least = min(costs) + _SLACK
        return next(order for order, cost in enumerate(costs) if cost <= least)


@dataclass(frozen=True)
class CompiledStock:
    """A stretch of days compiled.

    Attributes:
        items: what is kept.
        solutions: the value function of each item.
        demand: units asked for, by item and day.
        late: whether an order placed then takes a day longer, by item and review.
        reviews: number of decisions.
        review: days between them.
        reference: minus the expected cost of the reference policy.
        optimum: minus the expected cost of the optimal policy.
        prompt: writes the texts.
    """

    items: tuple[Item, ...]
    solutions: tuple[Solution, ...]
    demand: tuple[tuple[int, ...], ...]
    late: tuple[tuple[bool, ...], ...]
    reviews: int
    review: int
    reference: float
    optimum: float
    prompt: Prompt

    exact: ClassVar[bool] = True

    @classmethod
    def of(
        cls, instance: Mapping[str, Any], answer: Mapping[str, Any], prompt: Prompt, replies: int
    ) -> Self:
        """Compile the two parts of a Task.

        Raises:
            TaskError: if there are more reviews than `replies`, or outcomes do not fit the items.
        """
        items = read_items(instance)
        demand = tuple(tuple(map(int, path)) for path in answer["demand"])
        late = tuple(tuple(map(bool, path)) for path in answer["late"])
        days, review = int(instance["days"]), int(instance["review"])
        reviews = days // review
        if reviews > replies:
            raise TaskError(f"{reviews} reviews exceed the level's {replies} turns")
        if [len(path) for path in demand] != [days] * len(items):
            raise TaskError(f"demand covers {days} days of {len(items)} items")
        if [len(path) for path in late] != [reviews] * len(items):
            raise TaskError(f"late orders cover {reviews} reviews of {len(items)} items")
        for item, path in zip(items, late, strict=True):
            if any(path) and not item.model.slow:
                raise TaskError(f"an order of {item.sku} is late, which no order of it can be")
        return cls(
            items,
            tuple(Solution(item.model, solve(item.model)) for item in items),
            demand,
            late,
            reviews,
            review,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            prompt=prompt,
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        return self.prompt.stock_opening(self.items, [Inventory(item) for item in self.items])

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
        order_counts: fewest and most orders of a day.
        reference: what lean reorders and first come, first served achieve.
        optimum: an upper bound of what any policy achieves.
        plan: a plan made in hindsight, as replies.
        prompt: writes the texts.
    """

    shop: Shop
    values: tuple[float, float]
    order_counts: tuple[int, int]
    reference: float
    optimum: float
    plan: tuple[str, ...]
    prompt: Prompt

    exact: ClassVar[bool] = False

    @classmethod
    def of(
        cls, instance: Mapping[str, Any], answer: Mapping[str, Any], prompt: Prompt, replies: int
    ) -> Self:
        """Compile the two parts of a Task.

        Raises:
            TaskError: if there can be more decisions than `replies`.
        """
        low, high = instance["book"]["values"]
        fewest, most = instance["book"]["orders"]
        if len(answer["books"]) != int(instance["days"]):
            raise TaskError(f"{instance['days']} days need as many books of orders")
        compiled = cls(
            shop=read_shop(instance, answer["books"]),
            values=(float(low), float(high)),
            order_counts=(int(fewest), int(most)),
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=tuple(answer["plan"]),
            prompt=prompt,
        )
        if compiled.turns > replies:
            raise TaskError(f"{compiled.turns} decisions exceed the level's {replies} turns")
        return compiled

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        inventories = Days(self.shop).inventories
        terms = ShopTerms(self.shop, self.values, self.order_counts, inventories)
        return self.prompt.shop_opening(terms)

    @cached_property
    def turns(self) -> int:
        """Most possible decisions: every day, two more than it has orders."""
        return sum(len(book) + 2 for book in self.shop.books)

    @cached_property
    def book_texts(self) -> list[str]:
        """The text of the orders of each day."""
        return [
            "\n".join(["Orders", *map(order_line, book)]) if book else "No orders today."
            for book in self.shop.books
        ]


CompiledTask = CompiledPick | CompiledStock | CompiledSupply | CompiledLease | CompiledFull

MODES: Mapping[str, type[CompiledTask]] = MappingProxyType(
    {
        "pick": CompiledPick,
        "stock": CompiledStock,
        "supply": CompiledSupply,
        "lease": CompiledLease,
        "full": CompiledFull,
    }
)


def compile_task(task: Task, prompt: str, replies: int) -> CompiledTask:
    """Compile a Task of any mode.

    Args:
        task: the Task.
        prompt: `full` or `terse`.
        replies: most replies of its level.

    Raises:
        TaskError, LookupError, TypeError, ValueError, AttributeError: if the Task is damaged.
    """
    written = FullPrompt() if prompt == "full" else TersePrompt(task.fingerprint)
    return MODES[task.instance["mode"]].of(task.instance, task.answer, written, replies)
