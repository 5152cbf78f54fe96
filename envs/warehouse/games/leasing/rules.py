"""The rules of leasing out storage: customers, contracts and prices.

Every month a customer asks for bays for some months. A price is quoted; the customer signs if it is
not above a limit that nobody else knows. States are the bays that come back in 1, 2, ... months.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.plain import scalars

MOST_PRICE = 999
"""Highest price that a reply can quote."""
_MOST_STATES = 20_000

State = tuple[int, ...]
"""Bays that come back in 1, 2, ... months."""


@dataclass(frozen=True)
class CustomerKind(Immutable):
    """A kind of customer.

    Attributes:
        name: `A`, `B` and so on.
        bays: bays asked for.
        months: months asked for.
        low: least limit, $ a bay and month.
        high: greatest limit; every whole number between is equally likely.
    """

    name: str
    bays: int
    months: int
    low: int
    high: int

    def __post_init__(self) -> None:
        """Refuse a customer that nothing can be leased to."""
        if min(self.bays, self.months, self.low) < 1 or not self.low <= self.high < MOST_PRICE:
            raise TaskError(
                f"a customer needs bays, months and limits in [1, {MOST_PRICE}): {self}"
            )

    def signs(self, price: int) -> float:
        """Return the probability that a price is not above the limit."""
        return min(1.0, max(0.0, (self.high - price + 1) / (self.high - self.low + 1)))

    def earns(self, price: int) -> int:
        """Return what a contract earns."""
        return price * self.bays * self.months


@dataclass(frozen=True)
class LeaseModel(Immutable):
    """A warehouse to lease out for a number of months.

    Attributes:
        bays: bays in all.
        kinds: the types of customers.
        chances: by month, the probability of each kind; they sum to 1.
        start: the bays taken at the start.
    """

    bays: int
    kinds: tuple[CustomerKind, ...]
    chances: tuple[tuple[float, ...], ...]
    start: State

    def __post_init__(self) -> None:
        """Refuse a warehouse that cannot be leased out or solved."""
        if not self.kinds or not self.chances:
            raise TaskError("leasing needs types of customers and months")
        for shares in self.chances:
            if len(shares) != len(self.kinds) or abs(sum(shares) - 1.0) > 1e-6 or min(shares) < 0:
                raise TaskError(
                    f"{len(self.kinds)} probabilities sum to 1 in a month, got {shares}"
                )
        if len(self.start) != self.longest - 1 or min(self.start, default=0) < 0:
            raise TaskError(f"{self.longest - 1} numbers of bays taken are needed: {self.start}")
        if sum(self.start) > self.bays:
            raise TaskError(f"{self.start} bays are taken, there are {self.bays}")
        if math.comb(self.bays + self.longest - 1, self.longest - 1) > _MOST_STATES:
            raise TaskError(f"{self.bays} bays for {self.longest} months are too many to solve")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read a warehouse from its plain form, which has `chances` in percent.

        Raises:
            TaskError: if it cannot be leased out.
        """
        kinds = tuple(CustomerKind(**scalars(CustomerKind, kind)) for kind in data["kinds"])
        chances = tuple(tuple(percent / 100 for percent in row) for row in data["chances"])
        return cls(int(data["bays"]), kinds, chances, tuple(map(int, data["start"])))

    @property
    def months(self) -> int:
        """Number of decisions."""
        return len(self.chances)

    @cached_property
    def longest(self) -> int:
        """Months of the longest contract."""
        return max(kind.months for kind in self.kinds)

    def free(self, state: State) -> int:
        """Return the bays that are free."""
        return self.bays - sum(state)

    def next_month(self, state: State, signed: CustomerKind | None) -> State:
        """Return the state of the next month; there is room for what is signed."""
        taken = [*state, 0]
        if signed is not None:
            taken[signed.months - 1] += signed.bays
        return tuple(taken[1:])

    def states(self) -> list[State]:
        """Return every state there can be."""
        found: list[State] = [()]
        for _ in range(self.longest - 1):
            found = [
                (*state, bays) for state in found for bays in range(self.bays - sum(state) + 1)
            ]
        return found
