"""An item kept in stock for a number of days, as a Markov decision process with an end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.rewards.arrays import Floats, Ints

_TAIL = 1e-9
MOST_CHOICES = 4_000_000
"""Most states times orders of a dynamic program."""
SLACK = 1e-9
"""Orders whose expected costs differ by less are equal: rounding decides nothing."""


class StockValues(NamedTuple):
    """Expected costs of a policy from a point on to the end.

    Attributes:
        at_review: by review and state, before the order: shape (reviews, *state).
        next_day: by review and state, on the morning after it: shape (reviews, *state).
    """

    at_review: Floats
    next_day: Floats


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
        if self.room < 1 or self.choices > MOST_CHOICES:
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

    @property
    def choices(self) -> int:
        """Number of states times orders."""
        return int((self.room + 1) ** (self.longest + 1))

    @cached_property
    def means(self) -> tuple[float, ...]:
        """Expected demand by day."""
        return tuple(
            sum(units * share for units, share in enumerate(shares)) for shares in self.demand
        )

    @cached_property
    def left(self) -> Floats:
        """Probability that x on hand become j by the end of a day, (days, room + 1, room + 1)."""
        left = np.zeros((self.days, self.room + 1, self.room + 1))
        on_hand = np.arange(self.room + 1)
        for day, shares in enumerate(self.demand):
            for units, share in enumerate(shares):
                left[day, on_hand, np.maximum(on_hand - units, 0)] += share
        return left

    @cached_property
    def cost(self) -> Floats:
        """Expected cost of a day by units on hand, without the fixed cost: (days, room + 1)."""
        on_hand = np.arange(self.room + 1.0)
        left = self.left @ on_hand
        lost = np.array(self.means)[:, None] - on_hand + left
        return np.asarray(self.holding * left + self.lost * lost)


def poisson(mean: float) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, 2, ...; the tail beyond 1e-9 is added to the last."""
    shares = [math.exp(-mean)]
    while 1.0 - math.fsum(shares) > _TAIL:
        shares.append(shares[-1] * mean / len(shares))
    shares[-1] += 1.0 - math.fsum(shares)
    return tuple(shares)


@dataclass(frozen=True)
class Joint(Immutable):
    """Items that are planned together, and what they share; an item alone shares nothing.

    Arrays have an axis for what an item has on hand and one for what is due on each of the next
    `longest - 1` days, item after item; those over orders have an axis an item after these.

    Attributes:
        models: the items, reviewed on the same days.
        delivery: cost of a delivery, whatever is on it.
        room: most units on hand and on order of all items together.
    """

    models: tuple[StockModel, ...]
    delivery: float
    room: int

    def __post_init__(self) -> None:
        """Refuse items that cannot be solved together."""
        if self.delivery < 0.0 or self.room < 1:
            raise TaskError(f"shared deliveries cost >= 0 and room is >= 1, got {self}")
        rooms = [model.room for model in self.models]
        if math.prod(model.choices for model in self.models) > MOST_CHOICES:
            raise TaskError(f"{len(rooms)} items with room for {rooms} are too many")

    @classmethod
    def alone(cls, model: StockModel) -> Self:
        """Return an item that shares nothing."""
        return cls((model,), 0.0, model.room)

    def axes(self) -> tuple[list[list[Ints]], list[Ints]]:
        """Return the units along every axis of states, item by item, and of orders."""
        units = [np.arange(model.room + 1) for model in self.models]
        states = ([axis] * model.longest for axis, model in zip(units, self.models, strict=True))
        mesh = iter(np.ix_(*chain(*states), *units))
        return [list(islice(mesh, model.longest)) for model in self.models], list(mesh)

    @cached_property
    def placing(self) -> Floats:
        """Cost of placing an order, by state and order; infinite without room."""
        states, orders = self.axes()
        cost = self.delivery * np.any(np.broadcast_arrays(*orders), axis=0)
        free = self.room - sum(chain(*states, orders))
        for model, state, order in zip(self.models, states, orders, strict=True):
            cost = cost + model.fixed * (order > 0)
            free = np.minimum(free, model.room - sum(state) - order)
        return np.where(free < 0, np.inf, cost)

    def costs(self, day: int, morning: Floats, held: Sequence[slice] | None = None) -> Floats:
        """Return expected costs by state and order from a day on; infinite without room.

        Args:
            day: the day.
            morning: expected costs by state from the next morning on.
            held: the units on hand to look at, item by item; `None` for all there can be.
        """
        held = held or [slice(None)] * len(self.models)
        costs, shape, index = morning, list[int](), list[slice]()
        for model, row in zip(self.models, held, strict=True):
            left, size = model.left[day][row], model.room + 1
            # The other items are columns; when all had their turn, the first is in front again.
            later = _later(model, left, costs.reshape(*[size] * model.longest, -1))
            costs = later.reshape(-1, later.shape[-1]).T
            shape += [len(left), *[size] * model.longest]
            index += [row, *[slice(None)] * (model.longest - 1)]
        places = np.cumsum([model.longest + 1 for model in self.models]) - 1
        costs = np.moveaxis(costs.reshape(shape), places, range(-len(places), 0))
        costs = costs + self.placing[tuple(index)]
        axes = costs.ndim
        for model, row in zip(self.models, held, strict=True):
            costs += model.cost[day][row].reshape(-1, *[1] * (axes - 1))
            axes -= model.longest
        return costs


def _later(model: StockModel, left: Floats, value: Floats) -> Floats:
    """Return the expected `value` of an item's next morning by its state and order.

    Args:
        model: the item.
        left: by units on hand, the probabilities of units left in the evening.
        value: by state of the next morning; the last axis is over anything else.
    """
    units = np.arange(model.room + 1)
    together = np.minimum(units[:, None] + units, model.room)
    size, *rest = value.shape
    # One small product for each delivery: a single large one would wake threads for little work.
    by_delivery = np.matmul(left, value[together].reshape(size, size, -1))
    later: Floats = by_delivery.swapaxes(0, 1).reshape(len(left), size, *rest)
    if model.slow > 0.0:
        # On time, the order comes with what is due that day; late, it comes alone, a day later.
        on_time = later[..., 0, :][..., together, :]
        later = (1.0 - model.slow) * on_time + model.slow * later
    return later
