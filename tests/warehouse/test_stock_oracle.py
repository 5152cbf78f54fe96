"""The value function of an item is exact: every path, every order, every policy."""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.stock.heuristics import (
    lean_base_stock,
    levels,
    newsvendor,
    order_up_to,
)
from tokengym.envs.warehouse.games.stock.model import Joint, StockModel, poisson
from tokengym.envs.warehouse.games.stock.oracle import evaluate, optimal
from tokengym.envs.warehouse.games.stock.oracle import order_up_to as ordering_up_to
from tokengym.envs.warehouse.games.stock.rules import Inventory, Item

# Orders, lead times, leftovers and changing demand meet in each: no seed decides what these
# find. Fields: demand by day, lead, slow, review, holding, lost, fixed, leftover, room.
FIXED = [
    StockModel(((0.5, 0.5), (0.0, 1.0), (0.2, 0.8)), 2, 0.0, 1, 0.5, 9.0, 0.25, 4.0, 4),
    StockModel(((0.0, 1.0), (0.9, 0.1), (0.0, 0.0, 1.0)), 1, 0.0, 3, 1.0, 9.0, 1.0, 0.5, 5),
    StockModel(((0.5, 0.5), (0.0, 0.0, 1.0), (0.6, 0.4)) * 2, 1, 0.25, 3, 0.5, 6.0, 2.0, 3.0, 4),
    StockModel(
        ((0.3, 0.7), (0.0, 0.5, 0.5), (1.0, 0.0), (0.0, 1.0)), 2, 0.0, 2, 1.0, 5.0, 0.0, 2.0, 5
    ),
    StockModel(((0.1, 0.9), (0.5, 0.5)), 1, 0.5, 1, 0.5, 3.0, 0.5, 1.5, 3),
]


def cost_of(model: StockModel, rule: Callable[[StockModel, int], int]) -> np.ndarray:
    """Return the expected costs of an item that a rule keeps, by review and state."""
    joint = Joint.alone(model)
    return evaluate(joint, ordering_up_to(joint, [levels(rule, model)])).at_review


def mean_over_paths(model: StockModel, choose: Callable[[int, Inventory], int]) -> float:
    """Return the expected cost of a policy, playing every path of demand and of late orders."""
    mean = 0.0
    delays = [0, 1] if model.slow else [0]
    for path in itertools.product(*(range(len(day)) for day in model.demand)):
        for late in itertools.product(delays, repeat=model.reviews):
            chance = math.prod(
                day[asked] for day, asked in zip(model.demand, path, strict=True)
            ) * math.prod(model.slow if slow else 1.0 - model.slow for slow in late)
            if chance:
                mean += chance * played(model, choose, path, late)
    return mean


def played(
    model: StockModel,
    choose: Callable[[int, Inventory], int],
    path: Sequence[int],
    late: Sequence[int],
) -> float:
    inventory = Inventory(Item("S1", 1, (1,) * (model.longest - 1), model, "shares"))
    for review in range(model.reviews):
        order = choose(review, inventory)
        asked = path[review * model.review : (review + 1) * model.review]
        inventory.sell(order, asked, late=bool(late[review]))
    return inventory.cost + model.leftover * inventory.position


def above_the_room(model: StockModel, _review: int) -> int:
    """A level that there is never room for."""
    return model.room + 2


@pytest.mark.parametrize("rule", [lean_base_stock, newsvendor, above_the_room])
@pytest.mark.parametrize("model", FIXED)
def test_fixed_items_cost_the_mean_over_every_path(
    model: StockModel, rule: Callable[[StockModel, int], int]
) -> None:
    start = (0, *(1,) * model.longest)
    found = cost_of(model, rule)[start]
    mean = mean_over_paths(model, lambda review, one: order_up_to(rule, one, review))
    assert found == pytest.approx(mean, abs=1e-9)


def least_cost(model: StockModel, day: int, on_hand: int, due: tuple[int, ...]) -> float:
    """Return the least expected cost from a day on, by trying every order in every state."""
    if day == model.days:
        return model.leftover * (on_hand + sum(due))
    room = model.room - on_hand - sum(due) if day % model.review == 0 else 0
    costs = []
    for order in range(room + 1):
        cost = model.fixed * (order > 0)
        for late, chance in ((0, 1.0 - model.slow), (1, model.slow)):
            arriving = [*due, 0, 0][: model.longest]
            if chance:
                arriving[model.lead - 1 + late] += order
            for asked, share in enumerate(model.demand[day]):
                left = max(on_hand - asked, 0)
                paid = model.holding * left + model.lost * max(asked - on_hand, 0)
                if chance * share:
                    morning = left + arriving[0]
                    ahead = least_cost(model, day + 1, morning, tuple(arriving[1:]))
                    cost += chance * share * (paid + ahead)
        costs.append(cost)
    return min(costs)


@pytest.mark.parametrize("model", FIXED)
def test_trying_every_order_finds_the_optimum_of_fixed_items(model: StockModel) -> None:
    start = (1, (1,) * (model.longest - 1))
    found = optimal(Joint.alone(model)).at_review[(0, start[0], *start[1])]
    assert found == pytest.approx(least_cost(model, 0, *start), abs=1e-9)


def test_nothing_is_ordered_that_arrives_after_the_end() -> None:
    model = StockModel((poisson(3.0),) * 4, 1, 0.0, 1, 1.0, 9.0, 0.0, 2.0, 15)
    last = optimal(Joint.alone(model))
    # An order of the last day costs its leftover and nothing else.
    assert newsvendor(model, 3) == 0
    assert last.at_review[3][0] == pytest.approx(9.0 * 3.0, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"demand": ((0.5, 0.4),)}, "sum to 1"),
        ({"demand": ()}, "0 days"),
        ({"demand": ((1.0, 0.0),)}, "no demand"),
        ({"review": 2}, "1 days"),
        ({"slow": 1.0}, "slow"),
        ({"lead": 0}, "lead"),
        ({"lost": -1.0}, "costs"),
        ({"leftover": -1.0}, "costs"),
        ({"room": 0}, "room 0"),
        ({"room": 3000}, "too large"),
    ],
)
def test_an_item_that_cannot_be_solved_is_refused(change: dict[str, object], reason: str) -> None:
    terms = {
        "demand": ((0.5, 0.5),),
        "lead": 1,
        "slow": 0.0,
        "review": 1,
        "holding": 1.0,
        "lost": 1.0,
        "fixed": 0.0,
        "leftover": 0.0,
        "room": 5,
    }
    with pytest.raises(TaskError, match=reason):
        StockModel(**(terms | change))  # type: ignore[arg-type]


def test_poisson_shares_sum_to_one() -> None:
    for mean in (0.1, 5.0, 30.0):
        shares = poisson(mean)
        assert math.isclose(math.fsum(shares), 1.0)
        assert math.isclose(sum(n * p for n, p in enumerate(shares)), mean, rel_tol=1e-6)
