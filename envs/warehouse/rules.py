"""Rules of thumb for picking: which orders go next and how they are walked."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from tokengym.envs.warehouse.floor import Floor
from tokengym.envs.warehouse.grammar import MOST_WAIT, Trip, Wait
from tokengym.envs.warehouse.layout import Walks
from tokengym.envs.warehouse.orders import Order, Site, needs
from tokengym.envs.warehouse.routing import s_shape, shortest_tour

Rule = Callable[[Floor], Trip | Wait]
"""From the state of the floor to the next command of the free picker."""

_BLIND_WAIT = 5


def available(floor: Floor) -> list[Order]:
    """Return the orders that can be picked now, in the order of their ids."""
    stock = floor.stock
    return [
        order
        for order in floor.open.values()
        if order.release <= floor.now
        and (stock is None or all(stock[slot] >= units for slot, units in order.lines))
    ]


def singles(floor: Floor) -> Trip | Wait:
    """First come, first served: the order released first, alone, on its shortest tour."""
    orders = available(floor)
    if not orders:
        return until_release(floor)
    order = min(orders, key=lambda order: order.release)
    return exact_trip(floor, [order])


def earliest_due_exact(floor: Floor) -> Trip | Wait:
    """Fill a trip by earliest due date and walk its shortest tour."""
    batch = earliest_due_batch(floor)
    return exact_trip(floor, batch) if batch else until_release(floor)


def earliest_due_s_shape(floor: Floor) -> Trip | Wait:
    """Fill a trip by earliest due date and walk it in S-shape."""
    batch = earliest_due_batch(floor)
    if not batch:
        return until_release(floor)
    return Trip(tuple(order.id for order in batch), s_shape(list(needs(batch))))


def earliest_due_batch(floor: Floor) -> list[Order]:
    """Return the orders by due date that fit in one trip and in stock, later ones filling up."""
    return fill(floor, sorted(available(floor), key=lambda order: order.due))


def fill(floor: Floor, ranked: Iterable[Order]) -> list[Order]:
    """Take orders as ranked while capacity and stock allow."""
    batch: list[Order] = []
    for order in ranked:
        wanted = needs([*batch, order])
        fits = sum(wanted.values()) <= floor.site.capacity
        stock = floor.stock
        if fits and (stock is None or all(stock[slot] >= wanted[slot] for slot in wanted)):
            batch.append(order)
    return batch


def exact_trip(floor: Floor, batch: Sequence[Order]) -> Trip:
    """Return the trip for `batch` on its shortest tour."""
    walks: Walks = floor.site.walks
    return Trip(tuple(order.id for order in batch), shortest_tour(walks, list(needs(batch))))


def until_release(floor: Floor) -> Wait:
    """Wait for the next announced order; a short while if orders come unannounced."""
    coming = [order.release - floor.now for order in floor.open.values()]
    coming = [time for time in coming if time > 0]
    if not coming or not floor.site.announced:
        return Wait(_BLIND_WAIT)
    return Wait(min(*coming, MOST_WAIT))


def follow(rule: Rule, floor: Floor) -> float:
    """Play `rule` until nothing is left to ship and return the objective."""
    while floor.can_ship():
        command = rule(floor)
        if isinstance(command, Wait):
            floor.wait(command.time)
        else:
            floor.trip(*command)
    return floor.objective


def first_come_first_served(
    site: Site, orders: Sequence[Order], stock: Mapping[str, int] | None
) -> float:
    """Return what the reference policy achieves."""
    return follow(singles, Floor(site, orders, None if stock is None else dict(stock)))
