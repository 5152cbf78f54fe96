"""Rules of thumb for reordering: lean, base-stock and capped base-stock levels."""

from functools import lru_cache
from typing import NamedTuple

from tokengym.envs.warehouse.stock_oracle import StockModel, average_cost, order_up_to


class BaseStock(NamedTuple):
    """Order up to `level` units on hand and on order, at most `cap` at once."""

    level: int
    cap: int

    def order(self, position: int, room: int) -> int:
        """Return the units to order.

        Args:
            position: units on hand and on order.
            room: units that can still be ordered.
        """
        return max(0, min(self.level - position, self.cap, room))


def lean(model: StockModel) -> BaseStock:
    """Return the reference: as level the mean demand until halfway from arrival to the next review.

    It spares nothing for luck. A level that covers the whole review period would sit so close to
    the optimum that every weaker policy scored 0 on the reward grid.
    """
    level = round(model.mean * (model.lead + model.review / 2))
    return BaseStock(min(max(1, level), model.room), model.room)


@lru_cache(maxsize=4096)
def best_base_stock(model: StockModel) -> BaseStock:
    """Return the base-stock policy of the least average cost, by search from the mean upward."""
    return _descend(model, lean(model), caps=False)


@lru_cache(maxsize=4096)
def best_capped_base_stock(model: StockModel) -> BaseStock:
    """Return the best capped base-stock policy found by local search from the best uncapped one.

    Source: Xin, Operations Research 69 (2021), on capped base-stock policies for lost sales.
    """
    level = best_base_stock(model).level
    cap = min(model.room, max(1, round(1.4 * model.mean * model.review)))
    return _descend(model, BaseStock(level, cap), caps=True)


def _descend(model: StockModel, start: BaseStock, *, caps: bool) -> BaseStock:
    """Move to the best neighbour until none is better."""
    costs: dict[BaseStock, float] = {}

    def cost(policy: BaseStock) -> float:
        if policy not in costs:
            costs[policy] = average_cost(model, order_up_to(model, policy.level, policy.cap))
        return costs[policy]

    here = start
    while True:
        steps = [(1, 0), (-1, 0), *([(0, 1), (0, -1), (1, -1), (-1, 1)] if caps else [])]
        near = [
            BaseStock(here.level + up, here.cap + wider)
            for up, wider in steps
            if 0 <= here.level + up <= model.room and 1 <= here.cap + wider <= model.room
        ]
        best = min(near, key=cost)
        if cost(best) >= cost(here):
            return here
        here = best
