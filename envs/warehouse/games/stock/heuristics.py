"""Rules of thumb for reordering: each gives the level to order up to at a review."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tokengym.envs.warehouse.games.stock.model import FloatArray, IntArray, StockModel
from tokengym.envs.warehouse.games.stock.rules import Inventory

Rule = Callable[[StockModel, int], int]
"""From an item and the number of a review to a level of units on hand and on order."""


def order_up_to(rule: Rule, inventory: Inventory, review: int) -> int:
    """Return the units that restore the level of a rule, as far as there is room."""
    level = rule(inventory.item.model, review)
    return max(0, min(level - inventory.position, inventory.room))


def levels(rule: Rule, model: StockModel) -> IntArray:
    """Return the levels of a rule by review."""
    return np.array([rule(model, review) for review in range(model.reviews)])


@lru_cache(maxsize=65536)
def lean_base_stock(model: StockModel, review: int) -> int:
    """Return the reference's level: the mean demand until halfway from arrival to the next review.

    It reads no costs and spares nothing for luck. A level that covers the whole review period would
    sit so close to the optimum that weaker policies scored 0 on the reward grid.
    """
    today = review * model.review
    arrival = today + model.lead
    sure, half = model.means[today:arrival], model.means[arrival : arrival + model.review]
    return min(max(1, round(sum(sure) + sum(half) / 2)), model.room)


@lru_cache(maxsize=65536)
def newsvendor(model: StockModel, review: int) -> int:
    """Return the base-stock level that balances the costs of a unit too few and one too many.

    It covers demand until the next order can be there, as if that were all: the least level that
    suffices with probability lost / (lost + over). What an order costs, what is lost on the way and
    what comes after it leaves out.

    Source: Arrow, Harris and Marschak, Econometrica 19 (1951).
    """
    today = review * model.review
    end = min(today + model.lead + round(model.slow) + model.review, model.days)
    if today + model.lead >= model.days:
        return 0
    over = model.holding * model.review + (model.leftover if end == model.days else 0.0)
    enough = model.lost / (model.lost + over) if model.lost else 0.0
    shares: FloatArray = np.ones(1)
    for day in range(today, end):
        shares = np.convolve(shares, model.demand[day])
    return min(int(np.searchsorted(np.cumsum(shares), enough)), model.room)
