"""The exact optimum of keeping an item in stock: lost sales, a lead time, periodic review.

A day: what is due arrives, the order is placed (on review days), customers buy, unmet demand is
lost, costs are charged. States are arrays over (on hand, due in 1 day, ..., due in lead - 1 days).

Source: Zipkin, Operations Research 56 (2008), "Old and new methods for lost-sales inventory
systems", whose average costs `average_optimum` reproduces.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import TaskError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_TOLERANCE = 1e-7
_MOST_SWEEPS = 20_000
_STRIDE = 0.9
"""Share of a sweep's change that is taken: below 1, sweeps converge for periodic demand too."""
_TAIL = 1e-9
_MOST_CHOICES = 4_000_000


@dataclass(frozen=True)
class StockModel:
    """One item as the dynamic program sees it.

    Attributes:
        demand: probability of 0, 1, 2, ... units a day.
        lead: days from order to arrival, `>= 1`.
        review: an order can be placed every `review` days, `>= 1`.
        holding: cost of a unit left at the end of a day.
        lost: cost of a unit asked for and not there.
        fixed: cost of placing an order.
        room: most units on hand and on order together.
    """

    demand: tuple[float, ...]
    lead: int
    review: int
    holding: float
    lost: float
    fixed: float
    room: int

    def __post_init__(self) -> None:
        """Refuse an item that cannot be solved."""
        whole = math.isclose(sum(self.demand), 1.0, abs_tol=1e-6) and min(self.demand) >= 0.0
        if not whole:
            raise TaskError(f"probabilities of demand sum to 1, got {self.demand}")
        if self.mean <= 0.0:
            raise TaskError("an item must be asked for at least now and then, got no demand")
        if self.lead < 1 or self.review < 1 or min(self.holding, self.lost, self.fixed) < 0:
            raise TaskError(f"an item needs lead and review >= 1 and costs >= 0, got {self}")
        if self.room < 1 or (self.room + 1) ** (self.lead + 1) > _MOST_CHOICES:
            raise TaskError(
                f"room {self.room} with lead {self.lead} is empty or too large to solve exactly"
            )

    @property
    def mean(self) -> float:
        """Expected demand of a day."""
        return sum(units * share for units, share in enumerate(self.demand))

    @cached_property
    def left(self) -> FloatArray:
        """Probability that x on hand become j by the end of a day: shape (room + 1, room + 1)."""
        left = np.zeros((self.room + 1, self.room + 1))
        for on_hand in range(self.room + 1):
            for units, share in enumerate(self.demand):
                left[on_hand, max(on_hand - units, 0)] += share
        return left

    @cached_property
    def cost(self) -> FloatArray:
        """Expected cost of a day by units on hand, without the fixed cost: shape (room + 1,)."""
        on_hand = np.arange(self.room + 1)[:, None]
        units = np.arange(len(self.demand))[None, :]
        over = self.holding * np.maximum(on_hand - units, 0)
        cost: FloatArray = (over + self.lost * np.maximum(units - on_hand, 0)) @ np.array(
            self.demand
        )
        return cost

    @cached_property
    def position(self) -> IntArray:
        """Units on hand and on order by state: shape (room + 1,) * lead."""
        position: IntArray = np.indices((self.room + 1,) * self.lead).sum(axis=0)
        return position


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


def poisson(mean: float) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, 2, ...; the tail beyond 1e-9 is added to the last."""
    shares = [math.exp(-mean)]
    while 1.0 - math.fsum(shares) > _TAIL:
        shares.append(shares[-1] * mean / len(shares))
    shares[-1] += 1.0 - math.fsum(shares)
    return tuple(shares)


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
    for _ in range(_MOST_SWEEPS):
        next_day = _idle(model, value, model.review - 1)
        new = order_costs(model, next_day).min(axis=-1)
        change = (new - value)[valid]
        low, high = float(change.min()), float(change.max())
        value[valid] += _STRIDE * change
        value[valid] -= value.flat[0]
        if high - low < _TOLERANCE:
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
    step = _Step(model, orders)
    value = np.zeros(len(step.states))
    for _ in range(_MOST_SWEEPS):
        new = step.back(value)
        change = new - value
        if change.max() - change.min() < _TOLERANCE:
            return float(change.max() + change.min()) / 2 / model.review
        value += _STRIDE * change
        value -= value[0]
    raise TaskError(f"policy evaluation did not converge for {model}")


def expected_cost(
    model: StockModel, orders: IntArray, *, reviews: int, terminal: FloatArray
) -> FloatArray:
    """Return the expected cost by state of `reviews` cycles of a policy, then `terminal`.

    Entries of states that exceed the room are 0.
    """
    step = _Step(model, orders)
    fits = tuple(step.states.T)
    value = terminal[fits]
    for _ in range(reviews):
        value = step.back(value)
    costs = np.zeros(model.position.shape)
    costs[fits] = value
    return costs


class _Step:
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
