"""The answer of an instance: optimum, reference and plan, in any mode."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.days import read_shop
from tokengym.envs.warehouse.generator import draw_books, draw_course, draw_demand, draw_late
from tokengym.envs.warehouse.grammar import Done, write_pick
from tokengym.envs.warehouse.inventory import read_items
from tokengym.envs.warehouse.lease import LeaseModel, reference_value, solve_lease
from tokengym.envs.warehouse.lease_demand import draw_customers
from tokengym.envs.warehouse.oracle.full import (
    can_serve,
    daily_plans,
    hindsight_replies,
    upper_bound,
)
from tokengym.envs.warehouse.oracle.full import (
    reference_value as full_reference,
)
from tokengym.envs.warehouse.oracle.picking import best_plan
from tokengym.envs.warehouse.oracle.replies import replies
from tokengym.envs.warehouse.oracle.stock import evaluate, solve
from tokengym.envs.warehouse.orders import read_shift
from tokengym.envs.warehouse.picking_rules import first_come_first_served
from tokengym.envs.warehouse.reorder_rules import lean, levels
from tokengym.envs.warehouse.supply import Terms
from tokengym.envs.warehouse.supply_session import read_course

LEAST_STOCK_GAP = 0.2
"""Least gap between reference and optimum in expectation, as a share of it: costs must matter."""


def solve_instance(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> dict[str, Any] | None:
    """Solve an instance of any mode.

    Args:
        instance: the instance.
        rng: randomness of the outcomes that are not given.
        outcomes: for `stock` the units asked for by item and day, for `supply` the `demand` and
            `leads` by period, for `lease` the `kinds` and `limits` by month, for `full` the orders
            by day; `None` to draw them.

    Returns:
        the answer of a Task; `None` if the instance has no plan.

    Raises:
        TaskError, KeyError, TypeError, ValueError: if the instance is damaged or too large.
    """
    mode = instance["mode"]
    if mode == "pick":
        return _solve_pick(instance)
    if mode == "stock":
        demand = draw_demand(instance, rng) if outcomes is None else outcomes
        return _solve_stock(instance, demand, draw_late(instance, rng))
    if mode == "full":
        return _solve_full(instance, draw_books(instance, rng) if outcomes is None else outcomes)
    if mode == "supply":
        return _solve_supply(instance, draw_course(instance, rng) if outcomes is None else outcomes)
    if mode == "lease":
        found = draw_customers(instance, rng) if outcomes is None else outcomes
        return _solve_lease(instance, found)
    raise TaskError(f"the modes are pick, stock, supply, lease and full, got {mode!r}")


def _solve_pick(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return optimum, reference and the best plan of a shift."""
    site, orders, stock = read_shift(instance)
    best = best_plan(site, orders, stock=stock)
    left = sum(len(leg.ids) for leg in best.legs) < len(orders)
    return {
        "optimum": best.value,
        "reference": first_come_first_served(site, orders, stock),
        "plan": [*replies(best.legs, [0] * site.pickers), *([write_pick(Done())] if left else [])],
    }


def _solve_stock(
    instance: Mapping[str, Any],
    demand: Sequence[Sequence[int]],
    late: Sequence[Sequence[int]],
) -> dict[str, Any] | None:
    """Return the expected costs of optimum and reference; `None` if they are too close."""
    least = reference = 0.0
    for item in read_items(instance):
        model, start = item.model, (0, item.stock, *item.due)
        least += float(solve(model).at_review[start])
        reference += float(evaluate(model, levels(lean, model)).at_review[start])
    if reference - least < LEAST_STOCK_GAP * least:
        return None
    return {
        "demand": [list(path) for path in demand],
        "late": [list(path) for path in late],
        "optimum": -least,
        "reference": -reference,
    }


def _solve_supply(instance: Mapping[str, Any], course: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what hindsight earns and buying nothing; `None` if there is nothing to earn."""
    best = read_course(Terms.of(instance), course).best
    return {**course, "optimum": best, "reference": 0.0} if best > 0.0 else None


def _solve_lease(
    instance: Mapping[str, Any], customers: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the expected earnings of optimum and reference; `None` if they are too close."""
    model = LeaseModel.of(instance)
    best = solve_lease(model).expected(0, model.start)
    reference = reference_value(model)
    if best - reference < LEAST_STOCK_GAP * best:
        return None
    return {**customers, "optimum": best, "reference": reference}


def _solve_full(
    instance: Mapping[str, Any], books: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, Any] | None:
    """Return the bound, the reference and a plan made in hindsight; `None` if there is no plan."""
    shop = read_shop(instance, books)
    if not can_serve(shop):
        return None
    plans = daily_plans(shop)
    plan = hindsight_replies(shop, plans)
    if plan is None:
        return None
    return {
        "books": [[dict(order) for order in book] for book in books],
        "optimum": upper_bound(shop, plans),
        "reference": full_reference(shop),
        "plan": plan,
    }
