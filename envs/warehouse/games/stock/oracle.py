"""The exact optimum of keeping an item in stock for a number of days, by dynamic programming.

A day: what is due arrives, the order is placed (on review days), customers buy, unmet demand is
lost, costs are charged. After the last day every unit left or still to arrive is charged. An order
may take a day longer than the lead time; by the next morning that is known. States are arrays over
(on hand, due in 1 day, ..., due in longest - 1 days).

Items that share deliveries and room wait for each other, and what is kept of one leaves less room
for the others: one program over all of them, whose states and orders have an axis an item, solves
the joint replenishment problem (Balintfy, Management Science 10, 1964).

Source: Karlin and Scarf, in Studies in the Mathematical Theory of Inventory and Production (1958);
Zipkin, Operations Research 56 (2008), whose long-run costs of long horizons this reproduces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.stock.generator import draw_demand, draw_late
from tokengym.envs.warehouse.games.stock.heuristics import lean_base_stock, levels
from tokengym.envs.warehouse.games.stock.model import (
    SLACK,
    FloatArray,
    IntArray,
    Joint,
    StockModel,
    Values,
)
from tokengym.envs.warehouse.games.stock.rules import Inventory, Item, read_items, read_joint

LEAST_GAP = 0.2
"""Least gap between reference and optimum in expectation, as a share of it: costs must matter."""

Choice = Callable[[int, FloatArray], FloatArray]
"""From a review and the costs by state and order to the cost by state of the orders chosen."""


@lru_cache(maxsize=64)
def optimal(model: StockModel) -> Values:
    """Return the expected costs of the optimal policy; they are shared, do not change them."""
    return _go_back(model, lambda _review, costs: costs.min(axis=-1))


def evaluate(model: StockModel, levels: IntArray, cap: int | None = None) -> Values:
    """Return the expected costs of ordering up to `levels` (by review) as far as there is room.

    Args:
        model: the item.
        levels: units on hand and on order by review.
        cap: most units of an order; `None` for as many as the level takes.
    """

    def follow(review: int, costs: FloatArray) -> FloatArray:
        orders = np.clip(levels[review] - model.position, 0, cap)
        orders = np.minimum(orders, np.maximum(model.room - model.position, 0))
        return np.take_along_axis(costs, orders[..., None], axis=-1)[..., 0]

    return _go_back(model, follow)


def _go_back(model: StockModel, choose: Choice) -> Values:
    value = model.leftover * model.position.astype(np.float64)
    fits = model.position <= model.room
    at_review = np.zeros((model.reviews, *value.shape))
    next_day = np.zeros_like(at_review)
    for review in reversed(range(model.reviews)):
        first = review * model.review
        for day in reversed(range(first + 1, first + model.review)):
            value = _later(model, day, value)[..., 0] + _by_on_hand(model, day, model.longest)
        next_day[review] = value
        costs = choose(review, order_costs(model, first, value))
        value = at_review[review] = np.where(fits, costs, 0.0)
    return Values(at_review, next_day)


def order_costs(model: StockModel, day: int, next_day: FloatArray) -> FloatArray:
    """Return cost of the day plus expected cost-to-go by state and order; infinite if no room."""
    units = np.arange(model.room + 1)
    costs = _later(model, day, next_day)
    if model.slow > 0.0:
        # On time, the order comes with what is due that day; late, it comes alone, a day later.
        together = np.minimum(units[:, None] + units[None, :], model.room)
        costs = (1.0 - model.slow) * costs[..., 0][..., together] + model.slow * costs
    costs = costs + _by_on_hand(model, day, model.longest + 1)
    costs[..., 1:] += model.fixed
    costs[model.position[..., None] + units > model.room] = np.inf
    return costs


def _later(model: StockModel, day: int, value: FloatArray) -> FloatArray:
    """Return the expected `value` of the next state by on hand and due in 1, ..., longest days.

    Shape (room + 1,) * (longest + 1). Entries that exceed the room mean nothing.
    """
    size = model.room + 1
    units = np.arange(size)
    arrived = np.minimum(units[:, None] + units[None, :], model.room)
    # One small product for each delivery: a single large one would wake threads for little work.
    by_delivery = np.matmul(model.left[day], value[arrived].reshape(size, size, -1))
    expected: FloatArray = by_delivery.swapaxes(0, 1).reshape((size,) * (model.longest + 1))
    return expected


def _by_on_hand(model: StockModel, day: int, axes: int) -> FloatArray:
    cost: FloatArray = model.cost[day].reshape(-1, *(1,) * (axes - 1))
    return cost


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
        least = min(costs) + SLACK
        return next(order for order, cost in enumerate(costs) if cost <= least)


def evaluate_jointly(joint: Joint, choose: Choice) -> Values:
    """Return the expected costs of a policy."""
    model, states = joint.models[0], [np.arange(size) for size in joint.shape]
    fits = np.indices(joint.shape).sum(axis=0) <= joint.room
    ends = np.ix_(*(one.leftover * np.arange(one.room + 1.0) for one in joint.models))
    value: FloatArray = np.asarray(sum(ends))
    at_review = np.zeros((model.reviews, *joint.shape))
    next_day = np.zeros_like(at_review)
    for review in reversed(range(model.reviews)):
        first = review * model.review
        for day in reversed(range(first + 1, first + model.review)):
            value = joint.pass_day(day, value)
        next_day[review] = value
        costs = choose(review, joint.costs(first, states, value))
        value = at_review[review] = np.where(fits, costs, 0.0)
    return Values(at_review, next_day)


@lru_cache(maxsize=64)
def solve_jointly(joint: Joint) -> Values:
    """Return the expected costs of the optimal policy; they are shared, do not change them."""
    return evaluate_jointly(joint, lambda _, costs: costs.reshape(*joint.shape, -1).min(axis=-1))


@dataclass(frozen=True)
class JointSolution:
    """The value function of items that share deliveries, in the form a step reads.

    Attributes:
        joint: the items.
        values: expected costs of the optimal policy.
    """

    joint: Joint
    values: Values
    _costs: dict[tuple[int, ...], FloatArray] = field(default_factory=dict, compare=False)

    def costs(self, review: int, inventories: Sequence[Inventory]) -> FloatArray:
        """Return the expected cost from a review to the end by order, acting best after it."""
        state = (review, *(inventory.on_hand for inventory in inventories))
        if state not in self._costs:
            day = review * self.joint.models[0].review
            held = [np.array([units]) for units in state[1:]]
            costs = self.joint.costs(day, held, self.values.next_day[review])
            self._costs[state] = costs.reshape(self.joint.shape)
        return self._costs[state]

    def regret(self, review: int, inventories: Sequence[Inventory], orders: Sequence[int]) -> float:
        """Return by how much `orders` raise the expected cost above the least, `>= 0`."""
        costs = self.costs(review, inventories)
        return float(costs[tuple(orders)] - costs.min())

    def best_orders(self, review: int, inventories: Sequence[Inventory]) -> list[int]:
        """Return the orders of the least expected cost, of equals the first in order of items."""
        costs = self.costs(review, inventories)
        best: list[int] = np.argwhere(costs <= costs.min() + SLACK)[0].tolist()
        return best


@dataclass(frozen=True)
class Separate:
    """The value functions of items that share nothing."""

    solutions: tuple[Solution, ...]

    def regret(self, review: int, inventories: Sequence[Inventory], orders: Sequence[int]) -> float:
        """Return by how much `orders` raise the expected cost above the least, `>= 0`."""
        return sum(
            solution.regret(review, inventory, order)
            for solution, inventory, order in zip(self.solutions, inventories, orders, strict=True)
        )

    def best_orders(self, review: int, inventories: Sequence[Inventory]) -> list[int]:
        """Return the order of the least expected cost of every item, the smallest of equals."""
        pairs = zip(self.solutions, inventories, strict=True)
        return [solution.best_order(review, inventory) for solution, inventory in pairs]


def solution_of(items: Sequence[Item], joint: Joint | None) -> Separate | JointSolution:
    """Return the value function of items, which share something or nothing."""
    if joint is not None:
        return JointSolution(joint, solve_jointly(joint))
    return Separate(tuple(Solution(item.model, optimal(item.model)) for item in items))


def solve(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> dict[str, Any] | None:
    """Return the expected costs of optimum and reference, and what happens.

    Args:
        instance: the items.
        rng: randomness of what happens.
        outcomes: the units asked for by item and day; `None` to draw them.

    Returns:
        the answer of a Task; `None` if optimum and reference are too close.
    """
    demand = draw_demand(instance, rng) if outcomes is None else outcomes
    late = draw_late(instance, rng)
    items, joint = read_items(instance), read_joint(instance)
    if joint is None:
        least = reference = 0.0
        for item in items:
            model, start = item.model, (0, item.stock, *item.due)
            least += float(optimal(model).at_review[start])
            reference += float(evaluate(model, levels(lean_base_stock, model)).at_review[start])
    else:
        start = (0, *(item.stock for item in items))
        least = float(solve_jointly(joint).at_review[start])
        reference = float(evaluate_jointly(joint, _lean_orders(joint)).at_review[start])
    if reference - least < LEAST_GAP * least:
        return None
    return {
        "demand": [list(path) for path in demand],
        "late": late,
        "optimum": -least,
        "reference": -reference,
    }


def _lean_orders(joint: Joint) -> Choice:
    """Return the reference policy of items that share room: those first in order have it first."""
    targets = [levels(lean_base_stock, model) for model in joint.models]

    def choose(review: int, costs: FloatArray) -> FloatArray:
        held = np.indices(joint.shape)
        left, orders = joint.room - held.sum(axis=0), []
        for target, units, model in zip(targets, held, joint.models, strict=True):
            order = np.clip(target[review] - units, 0, model.room - units)
            orders.append(np.where(order <= left, order, 0))
            left = left - orders[-1]
        chosen: FloatArray = costs[(*held, *orders)]
        return chosen

    return choose
