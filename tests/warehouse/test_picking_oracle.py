"""The optimum of picking is exact: nothing found by exhaustion is better, and it can be played."""

import copy
import itertools
import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.warehouse.books import LAYOUT, SLOTS, books, sites
from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.picking.baselines import best_reply
from tokengym.envs.warehouse.games.picking.oracle import MOST_ORDERS, best_plan, commands
from tokengym.envs.warehouse.games.picking.orders import Order, Site, needs
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import Command, Trip, Wait, read_pick


def exhaust(state: PickingState, penalties: Mapping[str, float], most: int = MOST_ORDERS) -> float:
    """The best objective over every sequence of trips, routes and waits, by trying them all."""
    best = state.objective - sum(penalties[name] for name in state.open)
    coming = {order.release for order in state.open.values() if order.release > state.now}
    for release in coming:
        twin = copy.deepcopy(state)
        twin.wait(release - twin.now)
        best = max(best, exhaust(twin, penalties, most))
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
                best = max(best, exhaust(walked[min(walked)], penalties, most - 1))
    return best


def played(
    site: Site, orders: Sequence[Order], stock: Mapping[str, int] | None, said: Sequence[Command]
) -> PickingState:
    state = PickingState(site, orders, None if stock is None else dict(stock))
    for command in said:
        if isinstance(command, Wait):
            state.wait(command.time)
        else:
            assert isinstance(command, Trip)
            assert not isinstance(state.trip(*command), str)
    return state


@settings(max_examples=30)
@given(st.data(), st.integers(1, 2), st.booleans())
def test_no_plan_beats_the_oracle(data: st.DataObject, pickers: int, scarce: bool) -> None:
    site = data.draw(sites(pickers))
    orders = data.draw(books(release=15 if pickers == 1 else 0))
    stock = dict.fromkeys(SLOTS, 2) if scarce else None
    penalties = [float(data.draw(st.integers(0, 3))) for _ in orders]
    plan = best_plan(site, orders, stock=stock, penalties=penalties)
    by_id = {order.id: cost for order, cost in zip(orders, penalties, strict=True)}
    state = PickingState(site, orders, None if stock is None else dict(stock))
    assert math.isclose(plan.value, exhaust(state, by_id), abs_tol=1e-9)


@settings(max_examples=30)
@given(st.data(), st.integers(1, 2), st.integers(1, 3))
def test_no_plan_of_so_few_trips_beats_the_oracle_s(
    data: st.DataObject, pickers: int, most: int
) -> None:
    site, orders = data.draw(sites(pickers)), data.draw(books(release=0))
    plan = best_plan(site, orders, most=most)
    assert len(plan.legs) <= most
    state = PickingState(site, orders)
    assert math.isclose(plan.value, exhaust(state, dict.fromkeys(state.open, 0.0), most))


@settings(max_examples=20)
@given(st.data(), st.integers(1, 2), st.integers(0, 12))
def test_no_plan_beats_the_oracle_after_a_false_start(
    data: st.DataObject, pickers: int, lost: int
) -> None:
    site, orders = data.draw(sites(pickers)), data.draw(books(release=0))
    state = PickingState(site, orders, dict.fromkeys(SLOTS, 3))
    state.wait(lost)
    best = exhaust(state, dict.fromkeys(state.open, 0.0))
    while isinstance(command := read_pick(best_reply(state), complete=True), Trip | Wait):
        if isinstance(command, Wait):
            state.wait(command.time)
        else:
            assert not isinstance(state.trip(*command), str)
    assert math.isclose(state.objective, best, abs_tol=1e-9)


@settings(max_examples=40)
@given(st.data(), st.integers(1, 3))
def test_the_oracle_s_replies_earn_its_value(data: st.DataObject, pickers: int) -> None:
    site, orders = data.draw(sites(pickers)), data.draw(books(most=6, release=30))
    plan = best_plan(site, orders)
    state = played(site, orders, None, commands(plan.legs, [0] * pickers))
    assert math.isclose(state.objective, plan.value, abs_tol=1e-9)


@settings(max_examples=15)
@given(sites(), books(most=5, release=0))
def test_more_pickers_never_earn_less(site: Site, orders: list[Order]) -> None:
    values = [
        best_plan(Site(LAYOUT, site.capacity, site.decay, site.walk_cost, pickers=n), orders).value
        for n in (1, 2, 3)
    ]
    assert values == sorted(values)


def test_the_earliest_finish_is_not_always_best() -> None:
    """Two orders: together is faster for both, yet the first one's value is worth a trip alone."""
    site = Site(LAYOUT, capacity=4, decay=2.0, walk_cost=0.0)
    near = Order("O1", 10.0, 11, 0, (("A2-1", 1),), 1)
    far = Order("O2", 1.0, 30, 0, (("A2-4", 1),), 1)
    plan = best_plan(site, [near, far])
    assert [leg.ids for leg in plan.legs] == [("O1",), ("O2",)]
    together = best_plan(Site(LAYOUT, 4, 1e9, 0.01), [near, far])
    assert [leg.ids for leg in together.legs] == [("O1", "O2")]


def test_a_plan_that_is_back_later_and_earns_more_is_kept() -> None:
    """Only the earliest finish of each set of orders kept, this plan would be worth 7.00."""
    site = Site(LAYOUT, capacity=3, decay=5.0, walk_cost=0.05)
    orders = [
        Order("O1", 11.0, 36, 2, (("A1-4", 2),), 2),
        Order("O2", 7.0, 24, 4, (("A0-3", 1),), 1),
        Order("O3", 4.0, 3, 7, (("A0-2", 2),), 2),
    ]
    best = exhaust(PickingState(site, orders), dict.fromkeys(["O1", "O2", "O3"], 0.0))
    assert best_plan(site, orders).value == pytest.approx(best) == pytest.approx(17.441, abs=1e-3)


def test_of_two_pickers_too_a_plan_that_is_back_later_and_earns_more_is_kept() -> None:
    """Only the earliest finish of each set of orders kept, this plan would be worth 16.71."""
    site = Site(LAYOUT, capacity=3, decay=20.0, walk_cost=0.05, pickers=2)
    orders = [
        Order("O1", 4.0, 8, 0, (("A2-3", 1),), 1),
        Order("O2", 6.0, 5, 0, (("A2-2", 2), ("A1-2", 1)), 3),
        Order("O3", 8.0, 39, 0, (("A0-1", 1), ("A2-3", 1)), 2),
        Order("O4", 10.0, 27, 9, (("A2-2", 1),), 1),
    ]
    best = exhaust(PickingState(site, orders), dict.fromkeys(["O1", "O2", "O3", "O4"], 0.0))
    assert best_plan(site, orders).value == pytest.approx(best) == pytest.approx(20.411, abs=1e-3)


def test_of_two_pickers_a_plan_that_frees_the_second_one_sooner_is_kept() -> None:
    """Compared by who is free first alone, this plan would be dropped for one worth 16.70."""
    site = Site(LAYOUT, capacity=3, decay=5.0, walk_cost=0.05, pickers=2)
    orders = [
        Order("O1", 6.0, 20, 0, (("A0-4", 1),), 1),
        Order("O2", 6.0, 28, 0, (("A1-2", 1), ("A1-3", 1)), 2),
        Order("O3", 12.0, 32, 0, (("A1-4", 1), ("A2-2", 1)), 2),
        Order("O4", 3.0, 35, 0, (("A1-4", 1), ("A2-3", 1)), 2),
    ]
    best = exhaust(PickingState(site, orders), dict.fromkeys(["O1", "O2", "O3", "O4"], 0.0))
    assert best_plan(site, orders).value == pytest.approx(best) == pytest.approx(24.3)


def test_a_book_too_large_is_refused() -> None:
    order = Order("O1", 1.0, 1, 0, (("A0-1", 1),), 1)
    with pytest.raises(TaskError, match=str(MOST_ORDERS)):
        best_plan(Site(LAYOUT, 4, 1.0, 0.0), [order] * (MOST_ORDERS + 1))
