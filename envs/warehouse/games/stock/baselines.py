"""Scripted policies of keeping stock. All use only what the Turns have shown."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.stock import heuristics
from tokengym.envs.warehouse.games.stock.rules import Inventory
from tokengym.envs.warehouse.games.stock.session import StockSession
from tokengym.envs.warehouse.grammar import write_reorder
from tokengym.envs.warehouse.levels import StockLevel

Reorder = Callable[[Inventory, int, np.random.Generator], int]
"""From an item's inventory and the number of the review to the units to order."""

_ORDER_NOISE = 2
_UNITS = (0, 1, 2, 3, 5, 8, 12, 20)
"""Units that an input-independent baseline orders of every item."""


def _at_random(inventory: Inventory, review: int, rng: np.random.Generator) -> int:
    model = inventory.item.model
    today = review * model.review
    return int(rng.integers(2 * round(sum(model.means[today : today + model.review])) + 1))


def _off_target(inventory: Inventory, review: int, rng: np.random.Generator) -> int:
    off = int(rng.integers(-_ORDER_NOISE, _ORDER_NOISE + 1))
    units = heuristics.order_up_to(heuristics.newsvendor, inventory, review) + off
    return max(0, min(units, inventory.room))


def _silver_meal(inventory: Inventory, review: int, _rng: np.random.Generator) -> int:
    point, level = heuristics.silver_meal(inventory.item.model, review)
    units = min(level - inventory.position, inventory.room)
    return max(0, units) if inventory.position <= point else 0


def _up_to(rule: heuristics.Rule) -> Reorder:
    return lambda inventory, review, _rng: heuristics.order_up_to(rule, inventory, review)


_REORDERS: Mapping[str, Reorder] = MappingProxyType(
    {
        "null": lambda _inventory, _review, _rng: 0,
        "random": _at_random,
        "fcfs": _up_to(heuristics.lean_base_stock),
        "newsvendor": _up_to(heuristics.newsvendor),
        "noisy": _off_target,
    }
)


def _reordering(rule: Reorder) -> Callable[[StockSession, np.random.Generator], str]:
    return lambda session, rng: write_reorder(
        [
            (inventory.item.sku, rule(inventory, session.turns, rng))
            for inventory in session.inventories
        ]
    )


def _can_order(session: StockSession, rng: np.random.Generator) -> str:
    """Order by the rule of Silver and Meal; of items that share deliveries, all once one must be.

    Each item bears an equal part of a delivery. Source: Balintfy, Management Science 10 (1964).
    """
    joint, inventories = session.compiled.problem.joint, session.inventories
    if joint is None:
        return _reordering(_silver_meal)(session, rng)
    part, placed = joint.delivery / len(inventories), []
    room = joint.room - sum(one.position for one in inventories)
    levels = [heuristics.silver_meal(one.item.model, session.turns, part) for one in inventories]
    if any(one.position <= point for one, (point, _) in zip(inventories, levels, strict=True)):
        for one, (_, level) in zip(inventories, levels, strict=True):
            placed.append((one.item.sku, max(0, min(level - one.position, one.room, room))))
            room -= placed[-1][1]
    return write_reorder(placed)


POLICIES: Mapping[str, Callable[[StockSession, np.random.Generator], str]] = MappingProxyType(
    {
        **{name: _reordering(rule) for name, rule in _REORDERS.items()},
        "textbook": _can_order,
        "replan": lambda session, _rng: write_reorder(session.best_orders()),
        "oracle": lambda session, _rng: write_reorder(session.best_orders()),
    }
)


def blind(level: StockLevel) -> dict[str, Callable[[int], str]]:
    """Return policies that order the same at every review."""
    return {f"reorders of {units}": _same_reorders(level.items, units) for units in _UNITS}


def _same_reorders(items: int, units: int) -> Callable[[int], str]:
    lines = [(f"S{item + 1}", units) for item in range(items)]
    return lambda _turns: write_reorder(lines)
