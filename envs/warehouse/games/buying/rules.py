"""The rules of buying one article from a supplier, period by period, and the hindsight plan.

The rules are those of InventoryBench (Baek, Fu, Ma and Peng, 2025,
https://github.com/TianyiPeng/InventoryBench): in a period the order is placed, then what is due
arrives, then customers ask; what is not there is lost; an order may come late or never.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.games.stock.rules import Day
from tokengym.envs.warehouse.plain import scalars

SKU = "S1"
"""The article's name in replies."""
MOST_UNITS = 9999
"""Largest order that a reply can write."""


@dataclass(frozen=True)
class Terms(Immutable):
    """What is known at the start.

    Attributes:
        periods: number of decisions.
        promised: periods from order to arrival that the supplier promises; 0 is the same period.
        reliable: whether the supplier keeps the promise.
        profit: what a unit sold earns.
        holding: cost of a unit left at the end of a period.
        history: units asked for in the periods before, the last one most recent.
        about: description of the article; may be empty.
        dates: name of each period, such as its date; empty if they have none.
    """

    periods: int
    promised: int
    reliable: bool
    profit: float
    holding: float
    history: tuple[int, ...]
    about: str = ""
    dates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse terms that cannot be played."""
        if self.periods < 1 or self.promised < 0 or not self.history:
            raise TaskError(f"supply needs periods, a promise >= 0 and a history, got {self}")
        if self.profit <= 0.0 or self.holding < 0.0:
            raise TaskError(f"supply needs a profit > 0 and a holding cost >= 0, got {self}")
        if self.dates and len(self.dates) != self.periods:
            raise TaskError(f"{self.periods} periods need as many dates, got {len(self.dates)}")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read the terms of an instance.

        Raises:
            TaskError: if they cannot be played.
        """
        history, dates = tuple(map(int, data["history"])), tuple(map(str, data.get("dates", ())))
        return cls(**scalars(cls, data), history=history, dates=dates)


@dataclass(frozen=True)
class Scenario(Immutable):
    """What happens, whatever is ordered.

    Attributes:
        terms: what is known at the start.
        demand: units asked for by period.
        leads: periods to arrival of an order placed then; `None` if it never arrives.
    """

    terms: Terms
    demand: tuple[int, ...]
    leads: tuple[int | None, ...]

    exact = False

    def __post_init__(self) -> None:
        """Refuse a course of another length."""
        if not len(self.demand) == len(self.leads) == self.terms.periods:
            raise TaskError(
                f"{self.terms.periods} periods need as many demands and lead times, got "
                f"{len(self.demand)} and {len(self.leads)}"
            )
        if min(self.demand) < 0 or min((lead for lead in self.leads if lead), default=0) < 0:
            raise TaskError("demands and lead times are >= 0")

    @classmethod
    def of(cls, terms: Terms, answer: Mapping[str, Any]) -> Self:
        """Read what happens from an answer, where orders that never arrive have no lead time."""
        leads = tuple(None if lead is None else int(lead) for lead in answer["leads"])
        return cls(terms, tuple(map(int, answer["demand"])), leads)

    @property
    def turns(self) -> int:
        """Number of decisions."""
        return self.terms.periods

    @cached_property
    def served(self) -> dict[int, list[int]]:
        """By arrival, the periods whose demand is worth serving with it.

        A unit is cheapest if it comes as late as it can, and worth it if that earns more than
        keeping it until then costs.
        """
        arrivals = sorted(at + lead for at, lead in enumerate(self.leads) if lead is not None)
        served = {arrival: list[int]() for arrival in arrivals if arrival < self.terms.periods}
        latest = None
        for period in range(self.terms.periods):
            latest = period if period in served else latest
            if latest is not None and self._worth(latest, period) > 0.0:
                served[latest].append(period)
        return served

    def _worth(self, arrival: int, period: int) -> float:
        return self.terms.profit - self.terms.holding * (period - arrival)

    @cached_property
    def best(self) -> float:
        """What hindsight earns: no policy earns more on this course."""
        return sum(
            self._worth(arrival, period) * self.demand[period]
            for arrival, periods in self.served.items()
            for period in periods
        )


class Supply:
    """The state of buying.

    Attributes:
        course: what happens.
        on_hand: units that can be sold.
        pending: units ordered and not arrived by period of the order; lost ones stay here.
        days: the periods over.
        arrived: by arrival, the period of the order and that of the arrival.
        earned: profit less holding costs so far.
    """

    __slots__ = ("arrived", "course", "days", "earned", "on_hand", "pending")

    def __init__(self, course: Scenario) -> None:
        self.course = course
        self.on_hand = 0
        self.pending: dict[int, int] = {}
        self.days: list[Day] = []
        self.arrived: list[tuple[int, int]] = []
        self.earned = 0.0

    @property
    def period(self) -> int:
        """Periods over."""
        return len(self.days)

    @property
    def terms(self) -> Terms:
        """What is known at the start."""
        return self.course.terms

    @property
    def asked(self) -> tuple[int, ...]:
        """Units asked for in the periods over."""
        return self.course.demand[: self.period]

    @property
    def seen(self) -> tuple[int, ...]:
        """Units asked for, with those of the periods before the first."""
        return (*self.course.terms.history, *self.asked)

    def order(self, units: int) -> tuple[dict[int, int], int, int]:
        """Order `units`, play the period, and return what arrived (by period ordered) and sold.

        Returns:
            arrivals by the period they were ordered in, units sold and units lost.
        """
        course, now = self.course, self.period
        if units:
            self.pending[now] = units
        arrivals = {
            at: self.pending.pop(at) for at in list(self.pending) if self._arrives(at) == now
        }
        self.arrived += [(at, now) for at in arrivals]
        self.on_hand += sum(arrivals.values())
        asked = course.demand[now]
        sold = min(asked, self.on_hand)
        self.days.append(Day(self.on_hand, units, sold, asked - sold))
        self.on_hand -= sold
        self.earned += course.terms.profit * sold - course.terms.holding * self.on_hand
        return arrivals, sold, asked - sold

    def _arrives(self, at: int) -> int | None:
        lead = self.course.leads[at]
        return None if lead is None else at + lead

    def hindsight_order(self) -> int:
        """Return the order that hindsight places now, whatever was ordered before."""
        course = self.course
        arrival = self._arrives(self.period)
        if arrival not in course.served:
            return 0
        assert arrival is not None
        left = self.on_hand
        for period in range(self.period, arrival + 1):
            left += sum(units for at, units in self.pending.items() if self._arrives(at) == period)
            if period < arrival:
                left = max(0, left - course.demand[period])
        wanted = sum(course.demand[period] for period in course.served[arrival])
        return min(max(0, wanted - left), MOST_UNITS)
