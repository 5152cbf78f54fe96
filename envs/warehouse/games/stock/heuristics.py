"""Rules of thumb for reordering: each gives the level to order up to at a review."""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from tokengym.envs.warehouse.games.stock.model import StockModel
from tokengym.envs.warehouse.games.stock.rules import Inventory
from tokengym.rewards.arrays import Floats, Ints

Rule = Callable[[StockModel, int], int]
"""From an item and the number of a review to a level of units on hand and on order."""


def order_up_to(rule: Rule, inventory: Inventory, review: int) -> int:
    """Return the units that restore the level of a rule, as far as there is room."""
    level = rule(inventory.item.model, review)
    return max(0, min(level - inventory.position, inventory.room))


def levels(rule: Rule, model: StockModel) -> Ints:
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
def newsvendor(model: StockModel, review: int, reviews: int = 1) -> int:
    """Return the base-stock level that balances the costs of a unit too few and one too many.

    It covers demand until an order placed after some reviews can be there, as if that were all: the
    least level that suffices with probability lost / (lost + over). It ignores the
    cost of an order, units lost on the way and all later days.

    Source: Arrow, Harris and Marschak, Econometrica 19 (1951).
    """
    arrival = review * model.review + model.lead
    end = min(arrival + round(model.slow) + reviews * model.review, model.days)
    if arrival >= model.days:
        return 0
    over = model.holding * model.review + (model.leftover if end == model.days else 0.0)
    enough = model.lost / (model.lost + over) if model.lost else 0.0
    return min(int(np.searchsorted(_chances(model, review, end), enough)), model.room)


@lru_cache(maxsize=65536)
def silver_meal(model: StockModel, review: int, shared: float = 0.0) -> tuple[int, int]:
    """Return the stock with which an order cannot wait, and the level to order up to.

    The level is that of `newsvendor` for as many reviews as lower the cost a review of an order and
    of what it keeps, `shared` included. An order waits while the shortage that one more review
    risks costs no more than the order and its cost a review.

    Source: Silver and Meal, Production and Inventory Management 14 (1973).
    """
    first = review * model.review + model.lead
    if first >= model.days:
        return -1, 0
    kept, least, lasts = 0.0, math.inf, 1
    for reviews in range(1, model.reviews - review + 1):
        end = first + reviews * model.review
        kept += (
            (end - first - model.review) * model.holding * sum(model.means[:end][-model.review :])
        )
        if end > model.days or (cost := (model.fixed + shared + kept) / reviews) >= least:
            break
        least, lasts = cost, reviews
    late = first + round(model.slow)
    risk = _shortage(model, review, late + model.review) - _shortage(model, review, late)
    spared = model.fixed + shared + least
    return int((model.lost * risk > spared).nonzero()[0].max(initial=-1)), newsvendor(
        model, review, lasts
    )


def _shortage(model: StockModel, review: int, end: int) -> Floats:
    """Return by units held the mean demand beyond them from a review to the morning of a day."""
    met = np.cumsum(1.0 - _chances(model, review, min(end, model.days)))
    return sum(model.means[review * model.review : end]) - np.append(0.0, met[:-1])


def _chances(model: StockModel, review: int, end: int) -> Floats:
    """Return the chances of a demand of at most 0, 1, ... `room` units until a day."""
    shares: Floats = np.ones(1)
    for day in range(review * model.review, end):
        shares = np.convolve(shares, model.demand[day])
    missing = max(0, model.room + 1 - len(shares))
    return np.pad(np.cumsum(shares), (0, missing), constant_values=1.0)[: model.room + 1]
