"""Scripted policies of a shop: a rule that reorders, and one that picks."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.picking import baselines as picking
from tokengym.envs.warehouse.games.shop.session import ShopSession
from tokengym.envs.warehouse.games.stock.baselines import (
    REORDERS,
    UNITS,
    Reorder,
    same_reorders,
    silver_meal,
)
from tokengym.envs.warehouse.games.stock.model import Joint, StockModel
from tokengym.envs.warehouse.games.stock.oracle import Solution
from tokengym.envs.warehouse.games.stock.rules import Inventory
from tokengym.envs.warehouse.grammar import write_pick, write_reorder
from tokengym.envs.warehouse.levels import ShopLevel

Shopkeeper = Callable[[ShopSession, np.random.Generator], str]


def _play(reorder: Reorder, pick: picking.Pick) -> Shopkeeper:
    def reply(session: ShopSession, rng: np.random.Generator) -> str:
        if session.picking is not None:
            return pick(session.picking, rng)
        inventories, day = session.days.inventories, session.days.day
        return write_reorder([(one.item.sku, reorder(one, day, rng)) for one in inventories])

    return reply


def _penalties(session: ShopSession) -> dict[str, float]:
    """Return what leaving each open order costs."""
    shop, open_orders = session.compiled.problem.shop, session.days.picking.open
    return {name: shop.penalty(order) for name, order in open_orders.items()}


def _replan(session: ShopSession, _rng: np.random.Generator) -> str:
    """Pick by the best plan, and reorder as is optimal for each item on its own.

    Demand is taken for Poisson, and a unit lost costs its share of the orders' value too.
    """
    if session.picking is not None:
        return picking.replan(session.picking, _penalties(session))
    placed = []
    for inventory, model in _dear(session):
        (order,) = Solution.of(Joint.alone(model)).best_orders(session.days.day, [inventory])
        placed.append((inventory.item.sku, order))
    return write_reorder(placed)


def _textbook(session: ShopSession, rng: np.random.Generator) -> str:
    """Pick by value per time, and reorder each item by the rule of Silver and Meal."""
    if session.picking is not None:
        return picking.PICKS["textbook"](session.picking, rng)
    return write_reorder(
        [(one.item.sku, silver_meal(one, model, session.days.day)) for one, model in _dear(session)]
    )


def _dear(session: ShopSession) -> list[tuple[Inventory, StockModel]]:
    """Return the inventories, and models in which a unit lost costs its share of orders' value."""
    run, day, inventories = session.compiled.problem, session.days.day, session.days.inventories
    units = sum(inventory.item.model.means[day] for inventory in inventories)
    worth = sum(run.values) / 2 * sum(run.order_counts) / 2 / units
    models = [one.item.model for one in inventories]
    return [
        (one, replace(model, lost=model.lost + worth))
        for one, model in zip(inventories, models, strict=True)
    ]


def _oracle(session: ShopSession, _rng: np.random.Generator) -> str:
    """Follow the plan; where the session has left it, its reorders and the best trips."""
    plan = session.compiled.problem.plan
    if session.picking is not None:
        if session.on_plan:
            return write_pick(plan[session.turns])
        return picking.best_reply(session.picking, _penalties(session))
    mornings = [command for command in plan if isinstance(command, list)]
    return write_reorder(mornings[session.days.day])


POLICIES: Mapping[str, Shopkeeper] = MappingProxyType(
    {
        **{
            name: _play(REORDERS.get(name, REORDERS["fcfs"]), pick)
            for name, pick in picking.PICKS.items()
        },
        "textbook": _textbook,
        "replan": _replan,
        "oracle": _oracle,
    }
)


def blind(level: ShopLevel) -> dict[str, Callable[[int], str]]:
    """Return policies that order the same every day and ship the next orders by number."""
    return {
        f"{trips}, reorders of {units}": _both(pick, same_reorders(level.items, units))
        for (trips, pick), units in product(picking.TRIPS.items(), UNITS)
    }


def _both(pick: Callable[[int], str], reorder: Callable[[int], str]) -> Callable[[int], str]:
    """Write both a trip and reorders: the one that is not asked for is ignored."""
    return lambda turns: f"{pick(turns)}\n{reorder(turns)}"
