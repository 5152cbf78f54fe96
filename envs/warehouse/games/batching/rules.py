"""The rules of order batching: tours in S-shape, capacity, what is left at the end.

A tour goes up the first aisle that has an article and down the next one, and so on; the last of an
odd number of aisles is left the way it was entered, after its farthest article.

Source: Henn and Wäscher, European Journal of Operational Research 222 (2012).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.plain import scalars
from tokengym.rewards.arrays import Floats, Ints

MOST_AISLES = 12
"""The bound looks at all 2^12 sets of aisles."""
MOST_ORDERS = 100
"""Replies of an episode: every order may take one."""
_MOST_NAMED = 64
"""Orders that a reply can name, see `grammar`."""


@dataclass(frozen=True)
class Pool(Immutable):
    """Orders to batch, N of them, in A aisles.

    Attributes:
        aisles: number of aisles; the depot stands at the front of the first.
        rows: locations on a side of an aisle.
        cell: length of a location; articles are picked from its middle.
        pitch: length from an aisle to the next.
        margin: length from a cross-aisle to the first location.
        capacity: articles that a trip carries.
        orders: by order, aisle (from 0) and row (from 1) of every article.
        plan: the best batches known, by the numbers of their orders from 0.
        bound: a length that no batches fall below.
    """

    aisles: int
    rows: int
    cell: float
    pitch: float
    margin: float
    capacity: int
    orders: tuple[tuple[tuple[int, int], ...], ...]
    plan: tuple[tuple[int, ...], ...] = ()
    bound: float = 0.0

    def __post_init__(self) -> None:
        """Refuse orders that cannot be batched."""
        if not 1 <= self.aisles <= MOST_AISLES or self.rows < 1:
            raise TaskError(f"a floor has 1 to {MOST_AISLES} aisles with rows, got {self.aisles}")
        lengths = (self.cell, self.pitch, self.margin)
        if min(self.cell, self.pitch) <= 0.0 or self.margin < 0.0 or not isfinite(sum(lengths)):
            raise TaskError(f"a floor has cells and a pitch above 0, a margin >= 0: {lengths}")
        if not 1 <= len(self.orders) <= MOST_ORDERS:
            raise TaskError(f"1 to {MOST_ORDERS} orders are batched, got {len(self.orders)}")
        for number, places in enumerate(self.orders, start=1):
            if not 1 <= len(places) <= self.capacity:
                raise TaskError(
                    f"order {number} has {len(places)} articles, a trip carries {self.capacity}"
                )
            if any(not (0 <= a < self.aisles and 1 <= row <= self.rows) for a, row in places):
                raise TaskError(f"order {number} has an article off the floor")
        smallest = sorted(map(len, self.orders))[: _MOST_NAMED + 1]
        if len(smallest) > _MOST_NAMED and sum(smallest) <= self.capacity:
            raise TaskError(f"a trip can carry more orders than a reply can name, {_MOST_NAMED}")

    @classmethod
    def of(cls, instance: Mapping[str, Any], plan: Sequence[Any] = (), bound: float = 0.0) -> Self:
        """Read orders from an instance.

        Raises:
            TaskError: if they cannot be batched.
        """
        orders = [tuple((int(a), int(row)) for a, row in places) for places in instance["orders"]]
        batches = tuple(tuple(map(int, batch)) for batch in plan)
        terms = scalars(cls, {**instance["floor"], "capacity": instance["capacity"]})
        return cls(**terms, orders=tuple(orders), plan=batches, bound=float(bound))

    @property
    def turns(self) -> int:
        """Replies that suffice whatever they are: a trip for every order."""
        return len(self.orders)

    @property
    def exact(self) -> bool:
        """Whether the plan is proved to be the best."""
        return self.total(self.plan) <= self.bound + 1e-6

    @cached_property
    def units(self) -> Ints:
        """Articles by order."""
        return np.array([len(places) for places in self.orders])

    @cached_property
    def reach(self) -> Floats:
        """How far an order leads into each aisle from the front, 0 where it does not, (N, A)."""
        reach = np.zeros((len(self.orders), self.aisles))
        for number, places in enumerate(self.orders):
            for aisle, row in places:
                depth = self.margin + self.cell * (row - 0.5)
                reach[number, aisle] = max(reach[number, aisle], depth)
        return reach

    def lengths(self, reach: Floats) -> Floats:
        """Return the lengths of tours by how far they lead into each aisle, (..., A) to (...)."""
        visited = reach > 0.0
        count = visited.sum(axis=-1)
        last = self.aisles - 1 - visited[..., ::-1].argmax(axis=-1)
        back = 2.0 * np.take_along_axis(reach, last[..., None], axis=-1)[..., 0]
        through = 2.0 * self.margin + self.cell * self.rows
        odd = count % 2
        lengths: Floats = (count - odd) * through + odd * back + 2.0 * self.pitch * last
        return lengths

    def length(self, batch: Sequence[int]) -> float:
        """Return the length of the tour for a batch, orders by number."""
        return float(self.lengths(self.reach[list(batch)].max(axis=0)))

    def total(self, batches: Sequence[Sequence[int]]) -> float:
        """Return the length of the tours for batches together."""
        return sum(map(self.length, batches))

    def fits(self, batch: Sequence[int]) -> bool:
        """Return whether a trip can carry a batch."""
        return int(self.units[list(batch)].sum()) <= self.capacity
