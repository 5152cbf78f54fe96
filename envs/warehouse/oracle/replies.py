"""Plans as replies."""

from collections.abc import Mapping, Sequence

from tokengym.envs.warehouse.grammar import MOST_WAIT, Done, Trip, Wait, write_pick
from tokengym.envs.warehouse.oracle.picking import Leg, best_plan
from tokengym.envs.warehouse.picking import PickingState


def best_reply(state: PickingState, penalties: Mapping[str, float] | None = None) -> str:
    """Return the first reply of the best plan from here on, all releases being known.

    Args:
        state: the state of picking.
        penalties: cost of leaving each order unshipped, by id; `None` for no cost.
    """
    orders = list(state.open.values())
    costs = None if penalties is None else [penalties[order.id] for order in orders]
    plan = best_plan(state.site, orders, stock=state.stock, penalties=costs, free=state.free)
    return next(iter(replies(plan.legs, state.free)), write_pick(Done()))


def replies(legs: Sequence[Leg], free: Sequence[int]) -> list[str]:
    """Write a plan, its legs by start, as the replies that carry it out.

    Args:
        legs: trips by start.
        free: when each picker is free at first, ascending.
    """
    written: list[str] = []
    free = list(free)
    for leg in legs:
        while free[0] < leg.start:
            wait = Wait(min(leg.start - free[0], MOST_WAIT))
            written.append(write_pick(wait))
            free[0] += wait.time
            free.sort()
        written.append(write_pick(Trip(leg.ids, leg.stops)))
        free[0] = leg.finish
        free.sort()
    return written
