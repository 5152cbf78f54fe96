"""Laws of picking: what a trip takes and earns, what is refused and what a refusal costs."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.warehouse.books import books, sites
from tests.warehouse.drawn import task_of, world_of
from tokengym.envs.core.play import play
from tokengym.envs.registry import baselines
from tokengym.envs.warehouse.games.picking.heuristics import (
    earliest_due_exact,
    earliest_due_s_shape,
    follow,
    singles,
)
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite
from tokengym.envs.warehouse.games.picking.rules import PickingState, Shipment
from tokengym.envs.warehouse.layout import AisleLayout

SITE = PickingSite(AisleLayout(3, 4), capacity=4, decay=10.0, walk_cost=0.5)
BOOK = (
    Order("O1", 8.0, 5, 0, (("A0-2", 1), ("A1-1", 2)), 3),
    Order("O2", 5.0, 9, 0, (("A0-2", 1),), 1),
    Order("O3", 6.0, 9, 20, (("A2-4", 4),), 4),
)


def test_a_trip_takes_its_walk_and_time_per_unit() -> None:
    state = PickingState(SITE, BOOK)
    shipment = state.trip(["O1", "O2"], ["A0-2", "A1-1"])
    assert isinstance(shipment, Shipment)
    assert shipment.walked == 2 + (2 + 3) + (2 + 1)
    assert shipment.finish == state.now == shipment.walked + 4
    late = shipment.finish - 5, shipment.finish - 9
    earned = sum(value for _, value, _ in shipment.earned)
    assert earned == pytest.approx(8.0 * math.exp(-late[0] / 10) + 5.0 * math.exp(-late[1] / 10))
    assert state.objective == pytest.approx(earned - 0.5 * shipment.walked)
    assert list(state.open) == ["O3"]


def test_without_slots_a_trip_is_walked_in_s_shape() -> None:
    state, spelled = PickingState(SITE, BOOK), PickingState(SITE, BOOK)
    shipment = state.trip(["O2", "O1"], [])
    assert isinstance(shipment, Shipment)
    assert shipment.stops == ("A0-2", "A1-1")
    assert shipment == spelled.trip(["O2", "O1"], shipment.stops)


@pytest.mark.parametrize(
    ("ids", "stops", "reason"),
    [
        (["O9"], ["A0-2"], "there is no order O9"),
        (["O2", "O2"], ["A0-2"], "an order is named twice"),
        (["O3"], ["A2-4"], "O3 can be picked from t=20"),
        (["O1"], ["A0-2"], "the route leaves out A1-1"),
        (["O2"], ["A0-2", "A2-2"], "no order of the trip needs A2-2"),
        (["O2"], ["A0-2", "A0-2"], "a slot is visited twice"),
    ],
)
def test_a_refused_trip_says_why_and_costs_one(
    ids: list[str], stops: list[str], reason: str
) -> None:
    state = PickingState(SITE, BOOK)
    assert state.trip(ids, stops) == reason
    assert state.now == 1
    assert state.objective == 0.0
    assert len(state.open) == 3


def test_a_trip_over_capacity_or_short_of_stock_is_refused() -> None:
    small = PickingSite(AisleLayout(3, 4), capacity=3, decay=10.0, walk_cost=0.5)
    assert (
        PickingState(small, BOOK).trip(["O1", "O2"], ["A0-2", "A1-1"])
        == "4 units, a trip carries 3"
    )
    state = PickingState(SITE, BOOK, {"A0-2": 1, "A1-1": 2, "A2-4": 4})
    assert state.trip(["O1", "O2"], ["A0-2", "A1-1"]) == "A0-2 holds 1, the trip needs 2"
    state.trip(["O2"], ["A0-2"])
    assert state.trip(["O1"], ["A0-2", "A1-1"]) == "A0-2 holds 0, the trip needs 1"
    assert state.trip(["O2"], ["A0-2"]) == "O2 is shipped"
    assert state.can_ship()
    state.wait(20)
    state.trip(["O3"], ["A2-4"])
    assert not state.can_ship()


def test_orders_not_announced_do_not_exist_before_their_release() -> None:
    hidden = PickingSite(AisleLayout(3, 4), 4, 10.0, 0.5, announced=False)
    state = PickingState(hidden, BOOK)
    assert state.trip(["O3"], ["A2-4"]) == "there is no order O3"
    state.wait(19)
    assert isinstance(state.trip(["O3"], ["A2-4"]), Shipment)


@given(sites(), books(most=6, release=30), st.sampled_from(["singles", "exact", "s-shape"]))
def test_every_rule_ships_every_order(site: PickingSite, orders: list[Order], name: str) -> None:
    rule = {"singles": singles, "exact": earliest_due_exact, "s-shape": earliest_due_s_shape}[name]
    state = PickingState(site, orders)
    follow(rule, state)
    assert not state.open


@pytest.mark.parametrize("name", ["edd_sshape", "random", "null"])
def test_metrics_are_what_the_turns_have_said(name: str) -> None:
    world, orders = world_of("pick"), 8
    for index in range(3):
        record = play(world, task_of("pick", index), baselines("warehouse")[name])
        news = "\n".join(re.findall(r"Walked .*", "\n".join(turn.text for turn in record.turns)))
        late = [int(units or 0) for units in re.findall(r"\$[\d.]+(?: \((\d+) late\))?", news)]
        metrics = record.turns[-1].metrics
        assert metrics["walked"] == sum(map(int, re.findall(r"Walked (\d+)", news)))
        assert metrics["tardiness"] == sum(late)
        assert metrics["unshipped"] == orders - len(late)
        assert metrics["on_time"] == pytest.approx(late.count(0) / orders)
