"""The exact optimum of keeping items in stock for a number of days, by dynamic programming.

A day: what is due arrives, the order is placed (on review days), customers buy, unmet demand is
lost, costs are charged. After the last day every unit left or still to arrive is charged. An order
may take a day longer than the lead time; by the next morning that is known. States are arrays over
(on hand, due in 1 day, ..., due in longest - 1 days).

Items that share deliveries and room wait for each other, and what is kept of one leaves less room
for the others: one program over all of them, whose states and orders have axes for every item,
solves the joint replenishment problem (Balintfy, Management Science 10, 1964). Items that share
nothing are solved one by one.

Source: Karlin and Scarf, in Studies in the Mathematical Theory of Inventory and Production (1958);
Zipkin, Operations Research 56 (2008), whose long-run costs of long horizons this reproduces.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Any, Self

import numpy as np

from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.games.stock.generator import draw_demand, draw_late
from tokengym.envs.warehouse.games.stock.heuristics import lean_base_stock, levels
from tokengym.envs.warehouse.games.stock.model import SLACK, Joint, StockValues
from tokengym.envs.warehouse.games.stock.rules import Inventory, read_groups, read_items
from tokengym.rewards.arrays import Floats, Ints

LEAST_GAP = 0.2
"""Least gap between reference and optimum in expectation, as a share of it: costs must matter."""

Choice = Callable[[int, Floats], Floats]
"""From a review and the costs by state and order to the cost by state of the orders chosen."""


@lru_cache(maxsize=64)
def optimal(joint: Joint) -> StockValues:
    """Return the expected costs of the optimal policy; they are shared, do not change them."""
    items = len(joint.models)
    return evaluate(joint, lambda _, costs: costs.min(axis=tuple(range(-items, 0))))


def evaluate(joint: Joint, choose: Choice) -> StockValues:
    """Return the expected costs of a policy."""
    model = joint.models[0]
    no_order: tuple[Any, ...] = (..., *[0] * len(joint.models))
    states, _ = joint.axes()
    ends = (one.leftover * sum(held) for one, held in zip(joint.models, states, strict=True))
    value: Floats = np.asarray(sum(ends), dtype=np.float64)[no_order]
    at_review = np.zeros((model.reviews, *value.shape))
    next_day = np.zeros_like(at_review)
    # Of the days of a review cycle the first comes last: what it leaves in the arrays stays.
    for day in reversed(range(model.days)):
        review, since = divmod(day, model.review)
        next_day[review] = value
        costs = joint.costs(day, value)
        nothing = costs[no_order]
        chosen = nothing if since else choose(review, costs)
        at_review[review] = value = np.where(np.isfinite(nothing), chosen, 0.0)
    return StockValues(at_review, next_day)


def order_up_to(joint: Joint, targets: Sequence[Ints]) -> Choice:
    """Return the policy that orders up to levels; those first in order have shared room first.

    Args:
        joint: the items.
        targets: units on hand and on order by item and review.
    """
    states, orders = joint.axes()
    state = [axis.squeeze(tuple(range(-len(orders), 0))) for axis in chain(*states)]

    def choose(review: int, costs: Floats) -> Floats:
        free, units = joint.room - sum(state), []
        axes = iter(state)
        for model, target in zip(joint.models, targets, strict=True):
            held = sum(islice(axes, model.longest))
            wanted = np.clip(target[review] - held, 0, np.maximum(model.room - held, 0))
            units.append(np.where(wanted <= free, wanted, 0))
            free = free - units[-1]
        chosen: Floats = costs[(*state, *units)]
        return chosen

    return choose


@dataclass(frozen=True)
class Solution(Immutable):
    """The value function of items that are planned together, in the form a step reads.

    Attributes:
        joint: the items.
        values: expected costs of the optimal policy.
        at: where among all inventories and orders theirs are.
    """

    joint: Joint
    values: StockValues
    at: slice
    _costs: dict[tuple[int, ...], Floats] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, joint: Joint, at: slice = slice(None)) -> Self:
        """Solve items."""
        return cls(joint, optimal(joint), at)

    def costs(self, review: int, inventories: Sequence[Inventory]) -> Floats:
        """Return the expected cost from a review to the end by order, acting best after it.

        The rollouts of a Task meet the same states, so what was worked out is kept.
        """
        units = [(one.on_hand, *one.due) for one in inventories[self.at]]
        state = (review, *chain(*units))
        if state not in self._costs:
            day = review * self.joint.models[0].review
            held = [slice(on_hand, on_hand + 1) for on_hand, *_ in units]
            costs = self.joint.costs(day, self.values.next_day[review], held)
            self._costs[state] = costs[tuple(chain(*((0, *due) for _, *due in units)))]
        return self._costs[state]

    def regret(self, review: int, inventories: Sequence[Inventory], orders: Sequence[int]) -> float:
        """Return by how much `orders` raise the expected cost above the least, `>= 0`."""
        costs = self.costs(review, inventories)
        return float(costs[tuple(orders[self.at])] - costs.min())

    def best_orders(self, review: int, inventories: Sequence[Inventory]) -> list[int]:
        """Return the orders of the least expected cost, of equals the first in order of items."""
        costs = self.costs(review, inventories)
        best: list[int] = np.argwhere(costs <= costs.min() + SLACK)[0].tolist()
        return best


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
    items = iter(read_items(instance))
    least = reference = 0.0
    for joint in read_groups(instance):
        held = [next(items) for _ in joint.models]
        start = (0, *chain(*((item.stock, *item.due) for item in held)))
        lean = order_up_to(joint, [levels(lean_base_stock, model) for model in joint.models])
        least += float(optimal(joint).at_review[start])
        reference += float(evaluate(joint, lean).at_review[start])
    if reference - least < LEAST_GAP * least:
        return None
    return {
        "demand": [list(path) for path in demand],
        "late": late,
        "optimum": -least,
        "reference": -reference,
    }
