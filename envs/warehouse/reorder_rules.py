"""Rules of thumb for reordering: lean, base-stock, capped base-stock; and what a rule costs."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.stock_model import (
    MOST_SWEEPS,
    STRIDE,
    TOLERANCE,
    FloatArray,
    IntArray,
    StockModel,
)


class BaseStock(NamedTuple):
    """Order up to `level` units on hand and on order, at most `cap` at once."""

    level: int
    cap: int

    def order(self, position: int, room: int) -> int:
        """Return the units to order.

        Args:
            position: units on hand and on order.
            room: units that can still be ordered.
        """
        return max(0, min(self.level - position, self.cap, room))


def lean(model: StockModel) -> BaseStock:
    """Return the reference: as level the mean demand until halfway from arrival to the next review.

    It spares nothing for luck. A level that covers the whole review period would sit so close to
    the optimum that every weaker policy scored 0 on the reward grid.
    """
    level = round(model.mean * (model.lead + model.review / 2))
    return BaseStock(min(max(1, level), model.room), model.room)


@lru_cache(maxsize=4096)
def best_base_stock(model: StockModel) -> BaseStock:
    """Return the base-stock policy of the least average cost, by search from the mean upward."""
    return _descend(model, lean(model), caps=False)


@lru_cache(maxsize=4096)
def best_capped_base_stock(model: StockModel) -> BaseStock:
    """Return the best capped base-stock policy found by local search from the best uncapped one.

    Source: Xin, Operations Research 69 (2021), on capped base-stock policies for lost sales.
    """
    level = best_base_stock(model).level
    cap = min(model.room, max(1, round(1.4 * model.mean * model.review)))
    return _descend(model, BaseStock(level, cap), caps=True)


def _descend(model: StockModel, start: BaseStock, *, caps: bool) -> BaseStock:
    """Move to the best neighbour until none is better."""
    costs: dict[BaseStock, float] = {}

    def cost(policy: BaseStock) -> float:
        if policy not in costs:
            costs[policy] = average_cost(model, order_up_to(model, policy.level, policy.cap))
        return costs[policy]

    here = start
    while True:
        steps = [(1, 0), (-1, 0), *([(0, 1), (0, -1), (1, -1), (-1, 1)] if caps else [])]
        near = [
            BaseStock(here.level + up, here.cap + wider)
            for up, wider in steps
            if 0 <= here.level + up <= model.room and 1 <= here.cap + wider <= model.room
        ]
        best = min(near, key=cost)
        if cost(best) >= cost(here):
            return here
        here = best


def order_up_to(model: StockModel, level: int, cap: int | None = None) -> IntArray:
    """Return the orders of a (capped) base-stock policy by state, never more than there is room.

    Args:
        model: the item.
        level: units on hand and on order to restore.
        cap: most units of one order.
    """
    orders = np.clip(level - model.position, 0, model.room if cap is None else cap)
    return np.minimum(orders, np.maximum(model.room - model.position, 0))


def average_cost(model: StockModel, orders: IntArray) -> float:
    """Return the long-run cost a day of ordering `orders` (by state, at every review)."""
    step = _ReviewCycle(model, orders)
    value = np.zeros(len(step.states))
    for _ in range(MOST_SWEEPS):
        new = step.back(value)
        change = new - value
        if change.max() - change.min() < TOLERANCE:
            return float(change.max() + change.min()) / 2 / model.review
        value += STRIDE * change
        value -= value[0]
    raise TaskError(f"policy evaluation did not converge for {model}")


def expected_cost(
    model: StockModel, orders: IntArray, *, reviews: int, terminal: FloatArray
) -> FloatArray:
    """Return the expected cost by state of `reviews` cycles of a policy, then `terminal`.

    Entries of states that exceed the room are 0.
    """
    step = _ReviewCycle(model, orders)
    fits = tuple(step.states.T)
    value = terminal[fits]
    for _ in range(reviews):
        value = step.back(value)
    costs = np.zeros(model.position.shape)
    costs[fits] = value
    return costs


class _ReviewCycle:
    """A review cycle under one policy, over the states that fit the room."""

    def __init__(self, model: StockModel, orders: IntArray) -> None:
        self.model = model
        self.states = np.argwhere(model.position <= model.room)
        self._number = np.full(model.position.shape, -1)
        self._number[tuple(self.states.T)] = np.arange(len(self.states))
        self._chance = model.left[self.states[:, 0]]
        self._ordering = self._following(orders[tuple(self.states.T)])
        self._idling = self._following(np.zeros(len(self.states), dtype=np.int64))
        self._cost = model.cost[self.states[:, 0]]
        self._fixed = model.fixed * (orders[tuple(self.states.T)] > 0)

    def _following(self, ordered: IntArray) -> IntArray:
        """Return the number of the next state by state and units left: shape (states, room + 1)."""
        due = np.concatenate([self.states[:, 1:], ordered[:, None]], axis=1)
        left = np.arange(self.model.room + 1)[None, :]
        arrived = np.minimum(left + due[:, :1], self.model.room)
        rest = tuple(np.broadcast_to(column[:, None], arrived.shape) for column in due.T[1:])
        numbers: IntArray = self._number[(arrived, *rest)]
        return numbers

    def back(self, value: FloatArray) -> FloatArray:
        """Take one review cycle back from `value`."""
        for _ in range(self.model.review - 1):
            value = self._cost + (self._chance * value[self._idling]).sum(axis=1)
        follows: FloatArray = (self._chance * value[self._ordering]).sum(axis=1)
        return self._cost + self._fixed + follows
