"""The exact optimum of items that share deliveries and room: one dynamic program over all of them.

A delivery costs the same whatever items are on it, so that items wait for each other (the joint
replenishment problem), and what is kept of one item leaves less room for the others. States and
orders are arrays with an axis an item.

Source: Balintfy, Management Science 10 (1964), for deliveries that are shared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tokengym.envs.warehouse.games.stock.model import SLACK, FloatArray, Joint, Values
from tokengym.envs.warehouse.games.stock.rules import Inventory

Choice = Callable[[int, FloatArray], FloatArray]
"""From a review and the costs by state and order to the cost by state of the orders chosen."""


def evaluate_jointly(joint: Joint, choose: Choice) -> Values:
    """Return the expected costs of a policy."""
    model, states = joint.models[0], [np.arange(size) for size in joint.shape]
    fits = np.indices(joint.shape).sum(axis=0) <= joint.room
    value = sum(np.ix_(*(one.leftover * np.arange(one.room + 1.0) for one in joint.models)))
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
