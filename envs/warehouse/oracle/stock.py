"""The exact optimum of keeping an item in stock for a number of days, by dynamic programming.

A day: what is due arrives, the order is placed (on review days), customers buy, unmet demand is
lost, costs are charged. After the last day every unit left or still to arrive is charged. An order
may take a day longer than the lead time; by the next morning that is known. States are arrays over
(on hand, due in 1 day, ..., due in longest - 1 days).

Source: Karlin and Scarf, in Studies in the Mathematical Theory of Inventory and Production (1958);
Zipkin, Operations Research 56 (2008), whose long-run costs of long horizons this reproduces.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tokengym.envs.warehouse.stock_model import FloatArray, IntArray, StockModel

Choice = Callable[[int, FloatArray], FloatArray]
"""From a review and the costs by state and order to the cost by state of the orders chosen."""


class Values(NamedTuple):
    """Expected costs of a policy from a point on to the end.

    Attributes:
        at_review: by review and state, before the order: shape (reviews, *state).
        next_day: by review and state, on the morning after it: shape (reviews, *state).
    """

    at_review: FloatArray
    next_day: FloatArray


@lru_cache(maxsize=64)
def solve(model: StockModel) -> Values:
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
