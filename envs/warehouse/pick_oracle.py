"""The exact optimum of picking: every feasible trip on its shortest tour, in every sequence.

A dynamic program over sets of shipped orders with Pareto labels (when each picker is free, value):
keeping only the earliest finish would be wrong, since deadlines trade time against value.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.layout import Walks
from tokengym.envs.warehouse.orders import Order, Site, needs
from tokengym.envs.warehouse.routing import MOST_STOPS, IntArray, shortest_tours

FloatArray = npt.NDArray[np.float64]

MOST_ORDERS = 12
"""2^12 sets of orders are solved in well under a second; a larger book is refused, not guessed."""


class Trips(NamedTuple):
    """Every set of orders one trip can carry, T of them, each on its shortest tour.

    Attributes:
        sets_T: orders as bits.
        walked_T: steps of the tour.
        lasts_T: steps plus units.
        release_T: earliest start.
        stops: slots in walking order by trip.
    """

    sets_T: IntArray
    walked_T: IntArray
    lasts_T: IntArray
    release_T: IntArray
    stops: list[tuple[str, ...]]


class Leg(NamedTuple):
    """One trip of a plan.

    Attributes:
        start: when it leaves the depot.
        finish: when it is back.
        ids: its orders.
        stops: its slots in walking order.
    """

    start: int
    finish: int
    ids: tuple[str, ...]
    stops: tuple[str, ...]


class Plan(NamedTuple):
    """The best way to ship.

    Attributes:
        value: Σ value·exp(-lateness/decay) - walk_cost·steps - penalties of orders left.
        legs: trips by start.
    """

    value: float
    legs: tuple[Leg, ...]


class _Labels(NamedTuple):
    """Pareto-optimal ways to ship one set: K of them, with how each came about."""

    free_KP: IntArray
    value_K: FloatArray
    before_K: IntArray
    trip_K: IntArray
    start_K: IntArray


def feasible_trips(site: Site, orders: Sequence[Order]) -> Trips:
    """Enumerate the trips that capacity allows and route each exactly.

    Raises:
        TaskError: if there are more orders, or stops in a trip, than are solved exactly.
    """
    if len(orders) > MOST_ORDERS:
        raise TaskError(f"picking is solved for at most {MOST_ORDERS} orders, got {len(orders)}")
    sets: list[int] = []
    waiting = [(0, 0, 0)]
    while waiting:
        chosen, units, first = waiting.pop()
        for i in range(first, len(orders)):
            carried = units + orders[i].units
            if carried <= site.capacity:
                sets.append(chosen | 1 << i)
                waiting.append((chosen | 1 << i, carried, i + 1))
    members = [[order for i, order in enumerate(orders) if chosen >> i & 1] for chosen in sets]
    slots = [tuple(needs(group)) for group in members]
    walked, stops = _routes(site.walks, slots)
    units_T = np.array([sum(order.units for order in group) for group in members])
    release_T = np.array([max(order.release for order in group) for group in members])
    return Trips(np.array(sets), walked, walked + units_T, release_T, stops)


def _routes(
    walks: Walks, slots: Sequence[tuple[str, ...]]
) -> tuple[IntArray, list[tuple[str, ...]]]:
    """Route every trip; those with equally many stops at once."""
    walked = np.zeros(len(slots), dtype=np.int64)
    stops: list[tuple[str, ...]] = list(slots)
    matrix = np.array(walks.steps, dtype=np.int64)
    sizes = np.array([len(group) for group in slots])
    for size in np.unique(sizes):
        if size > MOST_STOPS:
            raise TaskError(f"a trip is routed through at most {MOST_STOPS} slots, got {size}")
        trips = np.flatnonzero(sizes == size)
        places = np.zeros((len(trips), size + 1), dtype=np.int64)
        places[:, 1:] = [[walks.number[slot] for slot in slots[trip]] for trip in trips.tolist()]
        lengths, sequences = shortest_tours(matrix[places[:, :, None], places[:, None, :]])
        walked[trips] = lengths
        for trip, sequence in zip(trips.tolist(), sequences.tolist(), strict=True):
            stops[trip] = tuple(slots[trip][i] for i in sequence)
    return walked, stops


def best_plan(
    site: Site,
    orders: Sequence[Order],
    *,
    stock: Mapping[str, int] | None = None,
    penalties: Sequence[float] | None = None,
    free: Sequence[int] | None = None,
) -> Plan:
    """Find the plan of the greatest value, all orders and releases being known.

    Args:
        site: the site; with several pickers, each trip goes to the one who is free first.
        orders: at most 12.
        stock: units by slot that trips may take in all; `None` for no limit.
        penalties: cost of leaving each order unshipped; `None` for no cost.
        free: when each picker is free, ascending; `None` for 0.

    Raises:
        TaskError: if there are too many orders.
    """
    if not orders:
        return Plan(0.0, ())
    trips = feasible_trips(site, orders)
    start = np.zeros((1, site.pickers), dtype=np.int64) if free is None else np.array([free])
    gains = _gains(site, orders, trips, int(start.max()))
    none = np.full(1, -1)
    labels: dict[int, _Labels] = {0: _Labels(start, np.zeros(1), none, none, none)}
    best_value, best_set, best_label = -np.inf, 0, 0
    left = [0.0] * len(orders) if penalties is None else penalties
    for shipped in range(1 << len(orders)):
        if shipped:
            members = [order for i, order in enumerate(orders) if shipped >> i & 1]
            if not _in_stock(members, stock):
                continue
            labels[shipped] = _extend(labels, shipped, trips, gains)
        lost = sum(cost for i, cost in enumerate(left) if not shipped >> i & 1)
        label = int(labels[shipped].value_K.argmax())
        value = float(labels[shipped].value_K[label]) - lost
        if value > best_value:
            best_value, best_set, best_label = value, shipped, label
    return Plan(best_value, _legs(labels, best_set, best_label, trips, orders))


def _gains(site: Site, orders: Sequence[Order], trips: Trips, free: int) -> FloatArray:
    """Return what each trip earns by its finish time: shape (T, times)."""
    latest = max(free, int(trips.release_T.max())) + int(trips.lasts_T.max()) * len(orders)
    times = np.arange(latest + 1)
    due = np.array([order.due for order in orders])
    value = np.array([order.value for order in orders])
    late = np.maximum(times[None, :] - due[:, None], 0)
    earned = value[:, None] * np.exp(-late / site.decay)
    carried = ((trips.sets_T[:, None] >> np.arange(len(orders))) & 1).astype(np.float64)
    gains: FloatArray = carried @ earned - site.walk_cost * trips.walked_T[:, None]
    return gains


def _in_stock(orders: Sequence[Order], stock: Mapping[str, int] | None) -> bool:
    return stock is None or all(stock[slot] >= units for slot, units in needs(orders).items())


def _extend(
    labels: Mapping[int, _Labels], shipped: int, trips: Trips, gains: FloatArray
) -> _Labels:
    """Return the labels of `shipped`: every last trip after every label of the rest."""
    last = np.flatnonzero((trips.sets_T & ~shipped) == 0)
    before = [labels[shipped ^ chosen] for chosen in trips.sets_T[last].tolist()]
    counts = np.array([len(rest.value_K) for rest in before])
    trip = np.repeat(last, counts)
    label = np.arange(len(trip)) - np.repeat(counts.cumsum() - counts, counts)
    free = np.concatenate([rest.free_KP for rest in before])
    start = np.maximum(free[:, 0], trips.release_T[trip])
    finish = start + trips.lasts_T[trip]
    value = np.concatenate([rest.value_K for rest in before]) + gains[trip, finish]
    free[:, 0] = finish
    free.sort(axis=1)
    kept = _undominated(free, value)
    return _Labels(free[kept], value[kept], label[kept], trip[kept], start[kept])


def _undominated(free: IntArray, value: FloatArray) -> IntArray:
    """Return which labels no other beats in value while free as early: indices, earliest first."""
    order = np.lexsort((-value, *free.T[::-1]))
    ranked = value[order]
    if free.shape[1] == 1:
        better = np.ones(len(order), dtype=bool)
        better[1:] = ranked[1:] > np.maximum.accumulate(ranked)[:-1]
        return order[better]
    kept: list[int] = []
    for i in order.tolist():
        rivals = np.array(kept, dtype=np.int64)
        if not ((free[rivals] <= free[i]).all(axis=1) & (value[rivals] >= value[i])).any():
            kept.append(i)
    return np.array(kept)


def _legs(
    labels: Mapping[int, _Labels], shipped: int, label: int, trips: Trips, orders: Sequence[Order]
) -> tuple[Leg, ...]:
    """Read a plan back from its last label."""
    legs: list[Leg] = []
    while shipped:
        entry = labels[shipped]
        trip = int(entry.trip_K[label])
        chosen = int(trips.sets_T[trip])
        ids = tuple(order.id for i, order in enumerate(orders) if chosen >> i & 1)
        start = int(entry.start_K[label])
        legs.append(Leg(start, start + int(trips.lasts_T[trip]), ids, trips.stops[trip]))
        shipped ^= chosen
        label = int(entry.before_K[label])
    return tuple(sorted(legs, key=lambda leg: leg.start))
