"""Greedy picking: trips that earn most per time, alone or as the best of many noisy plans.

Each plan is made for the orders that can be picked now by one picker, who never waits. Tours are
measured by cheapest insertion, and walked by the shortest tour.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from tokengym.envs.warehouse.games.picking.clauses import Ids, closures, fines, leaves
from tokengym.envs.warehouse.games.picking.heuristics import available, exact_trip, until_release
from tokengym.envs.warehouse.games.picking.orders import Order, needs
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import EndShift, Trip, Wait

_PLANS = 100
_NOISE = 0.6


def value_per_time(state: PickingState) -> Trip | Wait | EndShift:
    """Fill a trip with the order that most raises what it earns per time, while one does.

    Source: the index of Smith, Naval Research Logistics Quarterly 3 (1956); insertion: Rosenkrantz,
    Stearns and Lewis, SIAM Journal on Computing 6 (1977).
    """
    return _begin(state, _Planner(state).plan(lambda: 1.0)[1])


def randomized(state: PickingState, rng: np.random.Generator) -> Trip | Wait | EndShift:
    """Begin the best of many plans, each by `value_per_time` with noise on what a trip earns.

    Source: the greedy randomized construction of Feo and Resende, Journal of Global Optimization 6
    (1995).
    """
    planner = _Planner(state)
    plans = [planner.plan(lambda: 1.0)]
    plans += [planner.plan(lambda: math.exp(_NOISE * rng.normal())) for _ in range(_PLANS)]
    return _begin(state, max(plans, key=lambda plan: plan[0])[1])


def _begin(state: PickingState, batch: Sequence[Order]) -> Trip | Wait | EndShift:
    if batch:
        return exact_trip(state, batch)
    coming = any(order.release > state.now for order in state.open.values())
    return until_release(state) if coming else EndShift()


class _Planner:
    def __init__(self, state: PickingState) -> None:
        self.state, self.orders = state, available(state)
        self._tours: dict[frozenset[str], tuple[int, list[int]]] = {frozenset(): (0, [0, 0])}
        self._closures: dict[frozenset[str], list[tuple[int, int]]] = {}

    def plan(self, noise: Callable[[], float]) -> tuple[float, list[Order]]:
        """Return what trips for all orders earn, and the first of them."""
        left, now, earned = list(self.orders), self.state.now, 0.0
        first: list[Order] = []
        gone = self.state.gone
        while batch := self._fill(left, gone, now, noise):
            first = first or batch
            gain, time = self._trip(batch, gone, now)
            earned, now = earned + gain, now + time
            left = [order for order in left if order not in batch]
            gone |= {order.id for order in batch}
        return earned, first

    def _fill(
        self, left: Sequence[Order], gone: Ids, now: int, noise: Callable[[], float]
    ) -> list[Order]:
        batch: list[Order] = []
        best = 0.0
        while True:
            wider = [
                [*batch, order] for order in left if order not in batch and self._fits(batch, order)
            ]
            trips = [self._trip(each, gone, now) for each in wider]
            rates = [gain / time * noise() for gain, time in trips]
            if not rates or max(rates) <= best:
                return batch
            best = max(rates)
            batch = wider[rates.index(best)]

    def _fits(self, batch: Sequence[Order], order: Order) -> bool:
        units = sum(one.units for one in batch) + order.units
        return units <= self.state.site.capacity and (
            self.state.stock is None or self.state.in_stock(needs([*batch, order]).items())
        )

    def _trip(self, batch: Sequence[Order], gone: Ids, now: int) -> tuple[float, int]:
        """Return what a trip earns less its steps and fines, and how long it takes.

        An order that is paid with others counts as if it were paid alone.
        """
        site, length = self.state.site, self._tour(batch)[0]
        clauses = site.clauses
        cost, start = site.walk_cost * length, now
        if clauses:
            ids = frozenset([order.id for order in batch])
            if ids not in self._closures:
                slots = {slot for order in batch for slot in order.slots}
                self._closures[ids] = closures(clauses, ids, slots)
            start = leaves(self._closures[ids], now)
            cost += fines(clauses, gone, ids)
        back = start + length + sum(order.units for order in batch)
        value = 0.0
        for order in batch:
            late = max(0, back - order.due)
            worth = order.value * math.exp(-late / site.decay)
            for clause in clauses:
                worth = clause.worth(order.id, worth, late)
            value += worth
        return value - cost, back - now

    def _tour(self, batch: Sequence[Order]) -> tuple[int, list[int]]:
        """Return length and places of a tour: that without the last order, its slots inserted."""
        key = frozenset(order.id for order in batch)
        if key not in self._tours:
            number, steps = self.state.site.walks
            length, tour = self._tour(batch[:-1])
            for place in sorted({number[slot] for slot in batch[-1].slots} - {*tour}):
                longer = [
                    steps[a][place] + steps[place][b] - steps[a][b] for a, b in pairwise(tour)
                ]
                at = longer.index(min(longer))
                length, tour = length + longer[at], [*tour[: at + 1], place, *tour[at + 1 :]]
            self._tours[key] = length, tour
        return self._tours[key]
