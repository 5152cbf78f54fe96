"""The optimum of picking is exact: nothing found by exhaustion is better, and it can be played."""

import copy
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.books import LAYOUT, SLOTS, books, sites
from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.picking.oracle import (
    MOST_ORDERS,
    best_command,
    best_plan,
    commands,
)
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite, needs
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import Command, Trip, Wait


def exhaust(state: PickingState, most: int = MOST_ORDERS) -> float:
    """The best objective over every sequence of trips, routes and waits, by trying them all."""
    best = state.objective
    coming = {order.release for order in state.open.values() if order.release > state.now}
    for release in coming:
        twin = copy.deepcopy(state)
        twin.wait(release - twin.now)
        best = max(best, exhaust(twin, most))
    for count in range(1, len(state.open) + 1) if most else ():
        for batch in itertools.combinations(state.open.values(), count):
            stops = needs(batch)
            if sum(stops.values()) > state.site.capacity:
                continue
            walked = {}
            for route in itertools.permutations(stops):
                twin = copy.deepcopy(state)
                shipment = twin.trip([order.id for order in batch], route)
                if isinstance(shipment, str):
                    break
                walked[shipment.walked] = twin
            if walked:
                best = max(best, exhaust(walked[min(walked)], most - 1))
    return best


def carry_out(state: PickingState, command: Command) -> None:
    if isinstance(command, Wait):
        state.wait(command.time)
    else:
        assert isinstance(command, Trip)
        assert not isinstance(state.trip(*command), str)


@given(sites(), books(), st.booleans())
def test_no_plan_beats_the_oracle(site: PickingSite, orders: list[Order], scarce: bool) -> None:
    stock = dict.fromkeys(SLOTS, 2) if scarce else None
    plan = best_plan(site, orders, stock=stock)
    state = PickingState(site, orders, None if stock is None else dict(stock))
    assert math.isclose(plan.value, exhaust(state), abs_tol=1e-9)


@given(sites(), books(release=0), st.integers(1, 3))
def test_no_plan_of_so_few_trips_beats_the_oracle_s(
    site: PickingSite, orders: list[Order], most: int
) -> None:
    plan = best_plan(site, orders, most=most)
    assert len(plan.legs) <= most
    assert math.isclose(plan.value, exhaust(PickingState(site, orders), most))


@given(sites(), books(release=0), st.integers(0, 12))
def test_no_plan_beats_the_oracle_after_a_false_start(
    site: PickingSite, orders: list[Order], lost: int
) -> None:
    state = PickingState(site, orders, dict.fromkeys(SLOTS, 3))
    state.wait(lost)
    best = exhaust(state)
    while (command := best_command(state, list(state.open.values()))) is not None:
        carry_out(state, command)
    assert math.isclose(state.objective, best, abs_tol=1e-9)


@given(sites(), books(most=6, release=30))
def test_the_oracle_s_replies_earn_its_value(site: PickingSite, orders: list[Order]) -> None:
    plan = best_plan(site, orders)
    state = PickingState(site, orders)
    for command in commands(plan.legs):
        carry_out(state, command)
    assert math.isclose(state.objective, plan.value, abs_tol=1e-9)


def test_the_earliest_finish_is_not_always_best() -> None:
    """Two orders: together is faster for both, yet the first one's value is worth a trip alone."""
    site = PickingSite(LAYOUT, capacity=4, decay=2.0, walk_cost=0.0)
    near = Order("O1", 10.0, 11, 0, (("A2-1", 1),), 1)
    far = Order("O2", 1.0, 30, 0, (("A2-4", 1),), 1)
    plan = best_plan(site, [near, far])
    assert [leg.ids for leg in plan.legs] == [("O1",), ("O2",)]
    together = best_plan(PickingSite(LAYOUT, 4, 1e9, 0.01), [near, far])
    assert [leg.ids for leg in together.legs] == [("O1", "O2")]


def test_later_plans_that_earn_more_are_kept() -> None:
    """Only the earliest finish of each set of orders kept, this plan would be worth 7.00."""
    site = PickingSite(LAYOUT, capacity=3, decay=5.0, walk_cost=0.05)
    orders = [
        Order("O1", 11.0, 36, 2, (("A1-4", 2),), 2),
        Order("O2", 7.0, 24, 4, (("A0-3", 1),), 1),
        Order("O3", 4.0, 3, 7, (("A0-2", 2),), 2),
    ]
    best = exhaust(PickingState(site, orders))
    assert best_plan(site, orders).value == pytest.approx(best) == pytest.approx(17.441, abs=1e-3)


def test_a_book_too_large_is_refused() -> None:
    order = Order("O1", 1.0, 1, 0, (("A0-1", 1),), 1)
    with pytest.raises(TaskError, match=str(MOST_ORDERS)):
        best_plan(PickingSite(LAYOUT, 4, 1.0, 0.0), [order] * (MOST_ORDERS + 1))
