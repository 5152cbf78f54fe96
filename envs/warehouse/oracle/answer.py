"""The answer of an instance: optimum, reference and plan, in any mode."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.days import read_shop
from tokengym.envs.warehouse.generator import draw_books, draw_demand, draw_late
from tokengym.envs.warehouse.grammar import Done, write_pick
from tokengym.envs.warehouse.inventory import read_items
from tokengym.envs.warehouse.oracle.full import (
    can_serve,
    daily_plans,
    hindsight_replies,
    reference_value,
    upper_bound,
)
from tokengym.envs.warehouse.oracle.picking import best_plan
from tokengym.envs.warehouse.oracle.replies import replies
from tokengym.envs.warehouse.oracle.stock import evaluate, solve
from tokengym.envs.warehouse.orders import read_shift
from tokengym.envs.warehouse.picking_rules import first_come_first_served
from tokengym.envs.warehouse.reorder_rules import lean, levels

LEAST_STOCK_GAP = 0.2
"""Least expected cost of the reference above the optimum, as a share of it: costs must matter."""


def solve_instance(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Sequence[Any] | None
) -> dict[str, Any] | None:
    """Solve an instance of any mode.

    Args:
        instance: the instance.
        rng: randomness of the outcomes that are not given.
        outcomes: for `stock` the units asked for by item and day, for `full` the orders by day.

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
    raise TaskError(f"the modes are pick, stock and full, got {mode!r}")


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
        "reference": reference_value(shop),
        "plan": plan,
    }
