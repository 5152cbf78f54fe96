"""Rules of thumb for picking: which orders go next and by which route."""

from collections.abc import Callable, Iterable, Sequence

from tokengym.envs.warehouse.games.picking.orders import Order, needs
from tokengym.envs.warehouse.games.picking.routing import s_shape, shortest_tour
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import MOST_WAIT, Trip, Wait

Rule = Callable[[PickingState], Trip | Wait]
"""From the state of picking to the next command."""

_BLIND_WAIT = 5


def available(state: PickingState) -> list[Order]:
    """Return the orders that can be picked now, in the order of their ids."""
    orders = state.open.values()
    return [order for order in orders if order.release <= state.now and state.in_stock(order.lines)]


def singles(state: PickingState) -> Trip | Wait:
    """First come, first served: the order released first, alone, on its shortest tour."""
    orders = available(state)
    if not orders:
        return until_release(state)
    order = min(orders, key=lambda order: order.release)
    return exact_trip(state, [order])


def earliest_due_exact(state: PickingState) -> Trip | Wait:
    """Fill a trip by earliest due date and walk its shortest tour."""
    batch = earliest_due_batch(state)
    return exact_trip(state, batch) if batch else until_release(state)


def earliest_due_s_shape(state: PickingState) -> Trip | Wait:
    """Fill a trip by earliest due date and walk it in S-shape."""
    batch = earliest_due_batch(state)
    if not batch:
        return until_release(state)
    return Trip(tuple(order.id for order in batch), s_shape(list(needs(batch))))


def earliest_due(state: PickingState) -> list[Order]:
    """Return the orders that can be picked now, by due date."""
    return sorted(available(state), key=lambda order: order.due)


def earliest_due_batch(state: PickingState) -> list[Order]:
    """Return the orders by due date that fit in one trip and in stock, later ones filling up."""
    return fill(state, earliest_due(state))


def fill(state: PickingState, ranked: Iterable[Order]) -> list[Order]:
    """Take orders as ranked while capacity and stock allow."""
    batch: list[Order] = []
    for order in ranked:
        wanted = needs([*batch, order])
        if sum(wanted.values()) <= state.site.capacity and state.in_stock(wanted.items()):
            batch.append(order)
    return batch


def exact_trip(state: PickingState, batch: Sequence[Order]) -> Trip:
    """Return the trip for `batch` on its shortest tour."""
    stops = shortest_tour(state.site.walks, list(needs(batch)))
    return Trip(tuple(order.id for order in batch), stops)


def until_release(state: PickingState) -> Wait:
    """Wait for the next announced order, or a short while if orders are unannounced."""
    releases = [order.release for order in state.open.values()]
    coming = [release - state.now for release in releases if release > state.now]
    if not coming or not state.site.announced:
        return Wait(_BLIND_WAIT)
    return Wait(min(*coming, MOST_WAIT))


def follow(rule: Rule, state: PickingState) -> float:
    """Play `rule` until nothing is left to ship and return the objective."""
    while state.can_ship():
        command = rule(state)
        if isinstance(command, Wait):
            state.wait(command.time)
        else:
            state.trip(*command)
    return state.objective
