"""An item kept in stock as a Markov decision process: demand, lead time, review, costs, room."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import TaskError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

TOLERANCE = 1e-7
"""Value iteration stops once all states change by the same amount up to this."""
MOST_SWEEPS = 20_000
STRIDE = 0.9
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


def poisson(mean: float) -> tuple[float, ...]:
    """Return the probabilities of 0, 1, 2, ...; the tail beyond 1e-9 is added to the last."""
    shares = [math.exp(-mean)]
    while 1.0 - math.fsum(shares) > _TAIL:
        shares.append(shares[-1] * mean / len(shares))
    shares[-1] += 1.0 - math.fsum(shares)
    return tuple(shares)
