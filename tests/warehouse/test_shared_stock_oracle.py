"""The optimum of items that share deliveries and room is what trying every order finds."""

import itertools

import numpy as np
import pytest

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.stock.model import Joint, StockModel
from tokengym.envs.warehouse.games.stock.oracle import Solution, optimal
from tokengym.envs.warehouse.games.stock.rules import Inventory, Item, read_groups


def coupled(delivery: float = 3.0, room: int = 4, review: int = 2) -> Joint:
    """Two items that share deliveries and room, small enough to try everything."""
    demand = [((0.3, 0.7), (0.5, 0.5), (0.0, 1.0), (0.2, 0.8)), ((0.6, 0.2, 0.2),) * 4]
    terms = [(1.0, 6.0, 0.5, 2.0, 3), (0.5, 9.0, 1.0, 0.5, 3)]
    models = [StockModel(d, 1, 0.0, review, *rest) for d, rest in zip(demand, terms, strict=True)]
    return Joint(tuple(models), delivery, room)


def least_joint_cost(joint: Joint, day: int, on_hand: tuple[int, ...]) -> float:
    """Return the least expected cost from a day on, by trying every order in every state."""
    models = joint.models
    if day == models[0].days:
        return sum(model.leftover * units for model, units in zip(models, on_hand, strict=True))
    costs = []
    for orders in itertools.product(*(range(model.room + 1) for model in models)):
        placed = [units + order for units, order in zip(on_hand, orders, strict=True)]
        full = any(units > model.room for units, model in zip(placed, models, strict=True))
        if any(orders) and (day % models[0].review or full or sum(placed) > joint.room):
            continue
        cost = joint.delivery * any(orders)
        cost += sum(m.fixed * (order > 0) for m, order in zip(models, orders, strict=True))
        for asked in itertools.product(*(range(len(model.demand[day])) for model in models)):
            chance, paid, morning = 1.0, 0.0, []
            for model, units, order, want in zip(models, on_hand, orders, asked, strict=True):
                chance *= model.demand[day][want]
                paid += model.holding * max(units - want, 0) + model.lost * max(want - units, 0)
                morning.append(max(units - want, 0) + order)
            if chance:
                cost += chance * (paid + least_joint_cost(joint, day + 1, tuple(morning)))
        costs.append(cost)
    return min(costs)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("delivery", "room", "review"), [(3.0, 4, 2), (0.0, 6, 2), (8.0, 3, 2), (3.0, 5, 4)]
)
def test_trying_every_order_finds_the_optimum_of_sharers(
    delivery: float, room: int, review: int
) -> None:
    joint = coupled(delivery, room, review)
    found = optimal(joint).at_review[(0, 1, 1)]
    assert found == pytest.approx(least_joint_cost(joint, 0, (1, 1)), abs=1e-9)


def test_items_that_share_nothing_cost_the_sum_of_each() -> None:
    joint = coupled(0.0, 6)
    apart = [optimal(Joint.alone(model)).at_review[(0, 1)] for model in joint.models]
    assert optimal(joint).at_review[(0, 1, 1)] == pytest.approx(sum(apart), abs=1e-9)


def test_items_that_share_start_within_their_room() -> None:
    item = {"stock": 1, "due": [1], "lead": 2, "slow": 0, "demand": {"shares": [0.5, 0.5]}}
    item |= {"holding": 1, "lost": 5, "fixed": 1, "leftover": 0, "room": 3}
    items = [{**item, "sku": "S1"}, {**item, "sku": "S2"}]
    instance = {"review": 1, "days": 2, "items": items, "shared": {"delivery": 2, "room": 4}}
    (joint,) = read_groups(instance)
    assert (joint.delivery, joint.room) == (2.0, 4)
    with pytest.raises(TaskError, match="all items together have room for 3"):
        read_groups(instance | {"shared": {"delivery": 2, "room": 3}})


def test_items_whose_orders_take_different_times_are_solved_together() -> None:
    """Sharing nothing, they cost the sum of each, in every state and whatever is ordered."""
    demand = ((0.5, 0.5), (0.1, 0.2, 0.7), (0.6, 0.4))
    models = (
        StockModel(demand, 2, 0.0, 1, 0.5, 9.0, 0.25, 4.0, 3),
        StockModel(demand[::-1], 1, 0.25, 1, 1.0, 5.0, 1.0, 0.5, 4),
    )
    joint = Joint(models, 0.0, 7)
    one, other = (optimal(Joint.alone(model)).at_review[0] for model in models)
    for on_hand, due, held, coming in np.ndindex(4, 4, 5, 5):
        if on_hand + due > 3 or held + coming > 4:
            continue
        shelves = [
            Inventory(Item("S1", on_hand, (due,), models[0], "shares")),
            Inventory(Item("S2", held, (coming,), models[1], "shares")),
        ]
        least = optimal(joint).at_review[0, on_hand, due, held, coming]
        assert least == pytest.approx(one[on_hand, due] + other[held, coming], abs=1e-9)
        costs = Solution.of(joint).costs(0, shelves)
        apart = [
            Solution.of(Joint.alone(model)).costs(0, [shelf])
            for model, shelf in zip(models, shelves, strict=True)
        ]
        assert costs.min() == pytest.approx(least, abs=1e-9)
        assert np.allclose(costs, np.add.outer(*apart), atol=1e-9)
