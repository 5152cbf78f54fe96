"""The exact optimum of keeping an item in stock: lost sales, a lead time, periodic review.

A day: what is due arrives, the order is placed (on review days), customers buy, unmet demand is
lost, costs are charged. States are arrays over (on hand, due in 1 day, ..., due in lead - 1 days).

Source: Zipkin, Operations Research 56 (2008), "Old and new methods for lost-sales inventory
systems", whose average costs `solve` reproduces.
"""

from typing import NamedTuple

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.stock_model import (
    MOST_SWEEPS,
    STRIDE,
    TOLERANCE,
    FloatArray,
    StockModel,
)


class Values(NamedTuple):
    """The solution of an item.

    Attributes:
        average: optimal cost a day in the long run.
        at_review: relative cost-to-go on a review day, by state.
        next_day: relative cost-to-go on the day after a review day, by state.
    """

    average: float
    at_review: FloatArray
    next_day: FloatArray


def tomorrow(model: StockModel, value: FloatArray) -> FloatArray:
    """Return the expected `value` of the next state, by state and order: (room + 1,) * (lead + 1).

    Entries where on hand, on order and ordered exceed the room mean nothing.
    """
    size = model.room + 1
    units = np.arange(size)
    arrived = np.minimum(units[:, None] + units[None, :], model.room)
    # One small product for each delivery: a single large one would wake threads for little work.
    by_delivery = np.matmul(model.left, value[arrived].reshape(size, size, -1))
    expected: FloatArray = by_delivery.swapaxes(0, 1).reshape((size,) * (model.lead + 1))
    return expected


def order_costs(model: StockModel, next_day: FloatArray) -> FloatArray:
    """Return cost of the day plus expected cost-to-go by state and order; infinite if no room."""
    costs = tomorrow(model, next_day)
    costs += _by_on_hand(model, model.lead + 1)
    costs[..., 1:] += model.fixed
    ordered = np.arange(model.room + 1)
    costs[model.position[..., None] + ordered > model.room] = np.inf
    return costs


def solve(model: StockModel) -> Values:
    """Find the policy of the least average cost by relative value iteration.

    Raises:
        TaskError: if it does not converge.
    """
    valid = model.position <= model.room
    value = np.zeros(model.position.shape)
    for _ in range(MOST_SWEEPS):
        next_day = _idle(model, value, model.review - 1)
        new = order_costs(model, next_day).min(axis=-1)
        change = (new - value)[valid]
        low, high = float(change.min()), float(change.max())
        value[valid] += STRIDE * change
        value[valid] -= value.flat[0]
        if high - low < TOLERANCE:
            average = (low + high) / 2 / model.review
            return Values(average, value, _idle(model, value, model.review - 1, average))
    raise TaskError(f"value iteration did not converge for {model}")


def _idle(model: StockModel, value: FloatArray, days: int, average: float = 0.0) -> FloatArray:
    """Take `days` days without an order back from `value`."""
    for _ in range(days):
        value = tomorrow(model, value)[..., 0] + _by_on_hand(model, model.lead) - average
    return value


def _by_on_hand(model: StockModel, axes: int) -> FloatArray:
    return model.cost.reshape(-1, *(1,) * (axes - 1))
