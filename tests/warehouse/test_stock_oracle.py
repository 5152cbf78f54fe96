"""The value function of an item is exact: published averages, Bellman's equation, policies."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.oracle.stock import order_costs, solve
from tokengym.envs.warehouse.reorder_rules import (
    average_cost,
    best_base_stock,
    best_capped_base_stock,
    expected_cost,
    order_up_to,
)
from tokengym.envs.warehouse.stock_model import StockModel, poisson

ROOMS = {1: 24, 2: 28, 3: 32}

# Poisson(5), holding 1, no fixed cost: lead, lost sale, optimum, best base-stock cost and level.
AVERAGES = [
    (1, 4, 4.041, 4.163, 12),
    (1, 9, 5.438, 5.547, 13),
    (1, 19, 6.676, 6.728, 15),
    (2, 4, 4.395, 4.639, 16),
    (2, 9, 6.094, 6.316, 19),
    (2, 19, 7.664, 7.842, 21),
    (3, 4, 4.599, 4.975, 20),
    (3, 9, 6.531, 6.864, 23),
    (3, 19, 8.363, 8.604, 26),
]


def item(lead: int, lost: float, room: int | None = None, **terms: float) -> StockModel:
    return StockModel(
        demand=poisson(5.0),
        lead=lead,
        review=int(terms.get("review", 1)),
        holding=1.0,
        lost=lost,
        fixed=terms.get("fixed", 0.0),
        room=ROOMS[lead] if room is None else room,
    )


@st.composite
def items(draw: st.DrawFn) -> StockModel:
    shares = draw(st.lists(st.integers(0, 5), min_size=2, max_size=5).filter(lambda s: any(s[1:])))
    return StockModel(
        demand=tuple(share / sum(shares) for share in shares),
        lead=draw(st.integers(1, 2)),
        review=draw(st.integers(1, 3)),
        holding=draw(st.sampled_from([0.5, 1.0])),
        lost=draw(st.sampled_from([2.0, 9.0])),
        fixed=draw(st.sampled_from([0.0, 3.0])),
        room=draw(st.integers(3, 8)),
    )


@pytest.mark.parametrize(("lead", "lost", "optimum"), [row[:3] for row in AVERAGES if row[0] < 3])
def test_the_optimal_average_is_the_published_one(lead: int, lost: int, optimum: float) -> None:
    assert solve(item(lead, lost)).average == pytest.approx(optimum, abs=1e-3)


def test_the_optimal_average_of_a_long_lead_time_is_the_published_one() -> None:
    assert solve(item(3, 4, room=26)).average == pytest.approx(4.599, abs=1e-3)


@pytest.mark.parametrize(
    ("lead", "lost", "cost", "level"), [(a, b, d, e) for a, b, _, d, e in AVERAGES]
)
def test_base_stock_costs_what_is_published(lead: int, lost: int, cost: float, level: int) -> None:
    model = item(lead, lost)
    assert average_cost(model, order_up_to(model, level)) == pytest.approx(cost, abs=1e-3)


@pytest.mark.parametrize(
    ("lead", "lost", "level"), [(a, b, e) for a, b, _, _, e in AVERAGES if a < 3]
)
def test_the_search_finds_the_published_base_stock_level(lead: int, lost: int, level: int) -> None:
    assert best_base_stock(item(lead, lost)).level == level


@pytest.mark.parametrize("lead", [1, 2])
def test_a_cap_brings_base_stock_closer_to_the_optimum(lead: int) -> None:
    model = item(lead, 9)
    level, _ = best_base_stock(model)
    capped = best_capped_base_stock(model)
    best = solve(model).average
    with_cap = average_cost(model, order_up_to(model, *capped))
    assert best - 1e-6 <= with_cap < average_cost(model, order_up_to(model, level))


@settings(max_examples=25)
@given(items())
def test_values_satisfy_bellman_s_equation(model: StockModel) -> None:
    values = solve(model)
    costs = order_costs(model, values.next_day).min(axis=-1) - values.average
    fits = model.position <= model.room
    assert np.allclose(costs[fits], values.at_review[fits], atol=1e-5)


@settings(max_examples=15)
@given(items(), st.integers(0, 10**6))
def test_no_stationary_policy_costs_less_than_the_optimum(model: StockModel, seed: int) -> None:
    room = np.maximum(model.room - model.position, 0)
    orders = np.random.default_rng(seed).integers(0, room + 1)
    orders[model.position == 0] = 1  # so that no policy strands the item without stock
    values = solve(model)
    start = (0,) * model.lead
    reviews = 6
    least = reviews * model.review * values.average + values.at_review[start]
    costs = expected_cost(model, orders, reviews=reviews, terminal=values.at_review)
    assert costs[start] >= least - 1e-5


@settings(max_examples=10)
@given(items(), st.integers(1, 3))
def test_expected_cost_is_the_mean_over_every_path(model: StockModel, reviews: int) -> None:
    """By exhaustion over all demand paths of up to four days."""
    days = min(reviews * model.review, 4)
    reviews = max(1, days // model.review)
    days = reviews * model.review
    if len(model.demand) ** days > 3000:
        return
    orders = order_up_to(model, model.room // 2 + 1)
    mean = 0.0
    for path in itertools.product(range(len(model.demand)), repeat=days):
        on_hand, due, cost = 1, [1] * (model.lead - 1), 0.0
        for day, asked in enumerate(path):
            placed = int(orders[(on_hand, *due)]) if day % model.review == 0 else 0
            cost += model.fixed * (placed > 0)
            due.append(placed)
            left = max(on_hand - asked, 0)
            cost += model.holding * left + model.lost * max(asked - on_hand, 0)
            on_hand = left + due.pop(0)
        mean += math.prod(model.demand[asked] for asked in path) * cost
    start = (1,) * model.lead
    found = expected_cost(model, orders, reviews=reviews, terminal=np.zeros(model.position.shape))
    assert found[start] == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"demand": (0.5, 0.4)}, "sum to 1"),
        ({"lead": 0}, "lead"),
        ({"lost": -1.0}, "costs"),
        ({"room": 0}, "room 0"),
        ({"room": 3000}, "too large"),
    ],
)
def test_an_item_that_cannot_be_solved_is_refused(change: dict[str, object], reason: str) -> None:
    terms = {
        "demand": (0.5, 0.5),
        "lead": 1,
        "review": 1,
        "holding": 1.0,
        "lost": 1.0,
        "fixed": 0.0,
        "room": 5,
    }
    with pytest.raises(TaskError, match=reason):
        StockModel(**(terms | change))  # type: ignore[arg-type]


def test_poisson_shares_sum_to_one() -> None:
    for mean in (0.1, 5.0, 30.0):
        shares = poisson(mean)
        assert math.isclose(math.fsum(shares), 1.0)
        assert math.isclose(sum(n * p for n, p in enumerate(shares)), mean, rel_tol=1e-6)
