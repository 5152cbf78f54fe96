"""An item kept in stock for a number of days, as a Markov decision process with an end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_TAIL = 1e-9
MOST_CHOICES = 4_000_000
"""Most states times orders of a dynamic program."""
SLACK = 1e-9
"""Orders whose expected costs differ by less are equal: rounding decides nothing."""


class Values(NamedTuple):
    """Expected costs of a policy from a point on to the end.

    Attributes:
        at_review: by review and state, before the order: shape (reviews, *state).
        next_day: by review and state, on the morning after it: shape (reviews, *state).
    """

    at_review: FloatArray
    next_day: FloatArray


@dataclass(frozen=True)
class StockModel:
    """One item as the dynamic program sees it. Days count from 0.

    Attributes:
        demand: by day, the probabilities of 0, 1, 2, ... units; as many days as there are.
        lead: days from order to arrival, `>= 1`.
        slow: probability that an order takes a day longer, in [0, 1).
        review: an order can be placed every `review` days, `>= 1`, a divisor of the days.
        holding: cost of a unit left at the end of a day.
        lost: cost of a unit asked for and not there.
        fixed: cost of placing an order.
        leftover: cost of a unit left or still to arrive after the last day.
        room: most units on hand and on order together.
    """

    demand: tuple[tuple[float, ...], ...]
    lead: int
    slow: float
    review: int
    holding: float
    lost: float
    fixed: float
    leftover: float
    room: int

    def __post_init__(self) -> None:
        """Refuse an item that cannot be solved."""
        for shares in self.demand:
            if not math.isclose(sum(shares), 1.0, abs_tol=1e-6) or min(shares) < 0.0:
                raise TaskError(f"probabilities of demand sum to 1, got {shares}")
        if self.lead < 1 or self.review < 1 or not 0.0 <= self.slow < 1.0:
            raise TaskError(f"an item needs lead and review >= 1 and slow in [0, 1), got {self}")
        if min(self.holding, self.lost, self.fixed, self.leftover) < 0:
            raise TaskError(f"an item needs costs >= 0, got {self}")
        if not self.demand or self.days % self.review:
            raise TaskError(f"{self.days} days cannot be cut into reviews every {self.review} days")
        if sum(self.means) <= 0.0:
            raise TaskError("an item must be asked for at least now and then, got no demand")
        if self.room < 1 or (self.room + 1) ** (self.longest + 1) > MOST_CHOICES:
            raise TaskError(
                f"room {self.room} with orders that take {self.longest} days is empty or too large "
                "to solve exactly"
            )

    @property
    def days(self) -> int:
        """Number of days."""
        return len(self.demand)

    @property
    def reviews(self) -> int:
        """Number of decisions."""
        return self.days // self.review

    @property
    def longest(self) -> int:
        """Most days from order to arrival: a state has what is on hand and due before that."""
        return self.lead + (self.slow > 0.0)

    @cached_property
    def means(self) -> tuple[float, ...]:
        """Expected demand by day."""
        return tuple(
            sum(units * share for units, share in enumerate(shares)) for shares in self.demand
        )

    @cached_property
    def left(self) -> FloatArray:
        """Probability that x on hand become j by the end of a day, (days, room + 1, room + 1)."""
        left = np.zeros((self.days, self.room + 1, self.room + 1))
        on_hand = np.arange(self.room + 1)
        for day, shares in enumerate(self.demand):
            for units, share in enumerate(shares):
                left[day, on_hand, np.maximum(on_hand - units, 0)] += share
        return left

    @cached_property
    def cost(self) -> FloatArray:
        """Expected cost of a day by units on hand, without the fixed cost: (days, room + 1)."""
        on_hand = np.arange(self.room + 1)[:, None]
        cost = np.zeros((self.days, self.room + 1))
        for day, shares in enumerate(self.demand):
            units = np.arange(len(shares))[None, :]
            over = self.holding * np.maximum(on_hand - units, 0)
            cost[day] = (over + self.lost * np.maximum(units - on_hand, 0)) @ np.array(shares)
        return cost

    @cached_property
    def position(self) -> IntArray:
        """Units on hand and on order by state: shape (room + 1,) * longest."""
        position: IntArray = np.indices((self.room + 1,) * self.longest).sum(axis=0)
        return position


def poisson(mean: float) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, 2, ...; the tail beyond 1e-9 is added to the last."""
    shares = [math.exp(-mean)]
    while 1.0 - math.fsum(shares) > _TAIL:
        shares.append(shares[-1] * mean / len(shares))
    shares[-1] += 1.0 - math.fsum(shares)
    return tuple(shares)


@dataclass(frozen=True)
class Joint(Immutable):
    """Items, and what they share.

    Attributes:
        models: the items; what is ordered of them arrives the next morning.
        delivery: cost of a delivery, whatever is on it.
        room: most units on hand and on order of all items together.
    """

    models: tuple[StockModel, ...]
    delivery: float
    room: int

    def __post_init__(self) -> None:
        """Refuse items that cannot be solved together."""
        if any(model.lead != 1 or model.slow for model in self.models):
            raise TaskError("items that share deliveries have a lead time of 1 and no slow orders")
        if self.delivery < 0.0 or self.room < 1:
            raise TaskError(f"shared deliveries cost >= 0 and room is >= 1, got {self}")
        if math.prod(self.shape) ** 2 > MOST_CHOICES:
            raise TaskError(f"{len(self.models)} items with room for {self.shape} are too many")

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of units on hand there can be, by item."""
        return tuple(model.room + 1 for model in self.models)

    @cached_property
    def placing(self) -> FloatArray:
        """What placing every order costs, with an axis an item."""
        ordered = np.indices(self.shape) > 0
        fixed = np.array([model.fixed for model in self.models])
        together = self.delivery * ordered.any(axis=0)
        return np.asarray(np.tensordot(fixed, ordered, axes=1) + together, dtype=np.float64)

    def costs(self, day: int, on_hand: Sequence[IntArray], morning: FloatArray) -> FloatArray:
        """Return expected costs by state and order from a day on; infinite without room.

        Args:
            day: the day.
            on_hand: the units on hand to look at, by item.
            morning: expected costs by state from the next morning on.
        """
        units = [np.arange(size) for size in self.shape]
        places = np.ix_(*units, *units)
        left, ordered = places[: len(units)], places[len(units) :]
        costs = morning[
            tuple(
                np.minimum(rest + order, model.room)
                for rest, order, model in zip(left, ordered, self.models, strict=True)
            )
        ]
        for axis, (model, held) in enumerate(zip(self.models, on_hand, strict=True)):
            rows = model.left[day][held]
            costs = np.moveaxis(np.tensordot(rows, costs, axes=(1, axis)), 0, axis)
        held_S = np.ix_(*on_hand, *[np.zeros(1, np.int64)] * len(units))[: len(units)]
        costs = costs + self.placing
        free = np.asarray(self.room - sum(held_S) - sum(ordered))
        for model, held, order in zip(self.models, held_S, ordered, strict=True):
            costs += model.cost[day][held]
            free = np.minimum(free, model.room - held - order)
        return np.where(free < 0, np.inf, costs)

    def pass_day(self, day: int, morning: FloatArray) -> FloatArray:
        """Return the expected cost by state from a day without orders on."""
        for axis, model in enumerate(self.models):
            morning = np.moveaxis(np.tensordot(model.left[day], morning, axes=(1, axis)), 0, axis)
        return morning + sum(np.ix_(*(model.cost[day] for model in self.models)))
