"""The exact optimum of picking: every feasible trip on its shortest tour, in every sequence.

A dynamic program over sets of shipped orders with Pareto labels (when the picker is free, cost):
keeping only the earliest finish would be wrong, since deadlines trade time against value. Labels
that cannot lead to the value of a plan found before, by a bound on what the rest adds, are dropped:
no label of the best plan is among them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.picking.clauses import closures, fines, paid
from tokengym.envs.warehouse.games.picking.heuristics import follow, singles
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite, needs, read_shift
from tokengym.envs.warehouse.games.picking.routing import MOST_STOPS, shortest_tours
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.grammar import MOST_WAIT, Command, EndShift, Trip, Wait, write_pick
from tokengym.envs.warehouse.layout import Walks
from tokengym.rewards.arrays import Flags, Floats, Ints

MOST_ORDERS = 12
"""2^12 sets of orders are solved in well under a second; a larger book is refused, not guessed."""

_BEAM = 32
"""Unfinished plans kept at a time when a good plan is sought first."""
_SLACK = 1e-9
"""Rounding that a bound is spared."""


class Trips(NamedTuple):
    """Every set of orders one trip can carry, T of them, each on its shortest tour.

    Attributes:
        sets_T: orders as bits.
        walked_T: steps of the tour.
        lasts_T: steps plus units.
        release_T: earliest start.
        ids: its orders by trip.
        stops: slots in walking order by trip.
    """

    sets_T: Ints
    walked_T: Ints
    lasts_T: Ints
    release_T: Ints
    ids: list[frozenset[str]]
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


class PickingPlan(NamedTuple):
    """The best way to ship.

    Attributes:
        value: Σ value·exp(-lateness/decay) - walk_cost·steps, as the site's clauses have it.
        legs: trips by start.
    """

    value: float
    legs: tuple[Leg, ...]


class _Label(NamedTuple):
    """One way to ship a set, and how it was reached. Labels are ranked as tuples.

    Attributes:
        free: when the picker is free.
        cost: minus the value earned.
        trip: the last trip; -1 for none.
        before: the label it goes on from, by its number among those of the set without its orders.
        start: when it leaves.
        left: trips that may follow, where they are counted; else one more than there are orders.
    """

    free: int
    cost: float
    trip: int
    before: int
    start: int
    left: int


class _Outlook(NamedTuple):
    """Earnings of trips, bounds of orders by time, and facts of sets: T trips, N orders, 2^N sets.

    Attributes:
        start_TU: when each trip leaves by the time when the picker is free.
        gain: from a set that was shipped before, trips and their finish times to what they earn.
        hope_UN: a bound of what each order adds from a time on.
        open_SN: 1 for the orders that may earn after each set, else 0.
        stocked_S: whether stock covers the set.
    """

    start_TU: Ints
    gain: Callable[[int, Ints, Ints], Floats]
    hope_UN: Floats
    open_SN: Floats
    stocked_S: Flags

    def hope(self, shipped: Ints, time: Ints) -> Floats:
        """Return a bound on what all orders outside the sets `shipped` add from `time` on."""
        hope: Floats = (self.hope_UN[time] * self.open_SN[shipped]).sum(axis=-1)
        return hope


def feasible_trips(site: PickingSite, orders: Sequence[Order]) -> Trips:
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
    ids = [frozenset([order.id for order in group]) for group in members]
    return Trips(np.array(sets), walked, walked + units_T, release_T, ids, stops)


def _routes(walks: Walks, slots: Sequence[tuple[str, ...]]) -> tuple[Ints, list[tuple[str, ...]]]:
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
    site: PickingSite,
    orders: Sequence[Order],
    *,
    stock: Mapping[str, int] | None = None,
    free: int = 0,
    gone: Sequence[Order] = (),
    most: int | None = None,
) -> PickingPlan:
    """Find the plan of the greatest value, all orders and releases being known.

    Args:
        site: the site.
        orders: at most 12.
        stock: units by slot that trips may take in all; `None` for no limit.
        free: when the picker is free.
        gone: orders that have left already, for clauses.
        most: most trips, at least 1; `None` for no limit.

    Raises:
        TaskError: if there are too many orders.
    """
    if not orders:
        return PickingPlan(0.0, ())
    trips = feasible_trips(site, orders)
    none = (1 << len(gone)) - 1 << len(orders)
    orders = [*orders, *gone]
    trips_left = len(orders) + 1 if most is None else most
    first = _Label(free, 0.0, -1, -1, -1, trips_left)
    outlook = _outlook(site, orders, trips, free, stock)
    least = _value_of_some_plan(trips, outlook, free, none, trips_left) - _SLACK
    reached: dict[int, list[_Label]] = {none: [first]}
    best_value, best_set, best_label = -math.inf, none, 0
    # In ascending order: the sets that a set is reached from are parts of it, so they come before.
    for shipped in range(1 << len(orders)):
        if shipped not in reached:
            continue
        labels = reached[shipped] = _undominated(reached[shipped])
        _extend(reached, shipped, trips, outlook, least, counted=most is not None)
        label = min(range(len(labels)), key=lambda number: labels[number].cost)
        value = 0.0 - labels[label].cost
        if value > best_value:
            best_value, best_set, best_label = value, shipped, label
    return PickingPlan(best_value, _legs(reached, best_set, best_label, trips, orders, none))


def _outlook(
    site: PickingSite,
    orders: Sequence[Order],
    trips: Trips,
    free: int,
    stock: Mapping[str, int] | None,
) -> _Outlook:
    """Look ahead from the time when the picker is free.

    No trip with an order is back before the quickest such trip that leaves at once, and shared out
    by unit, no trip costs an order less walking than the cheapest a unit.
    """
    pairs = zip(trips.ids, trips.stops, strict=True)
    closed_T = [closures(site.clauses, ids, stops) for ids, stops in pairs] if site.clauses else []
    opens = max((end for closed in closed_T for _, end in closed), default=0)
    latest = max(free, int(trips.release_T.max()), opens)
    latest += int(trips.lasts_T.max()) * len(orders)
    times = np.arange(latest + 1)
    start_TU = np.maximum(times, trips.release_T[:, None])
    for trip, closed in enumerate(closed_T):
        leaves_U = times.copy()
        for start, end in reversed(closed):
            leaves_U[start:end] = leaves_U[end]
        start_TU[trip] = leaves_U[start_TU[trip]]
    due = np.array([order.due for order in orders])
    value = np.array([order.value for order in orders])
    late = np.maximum(times[None, :] - due[:, None], 0)
    earned = value[:, None] * np.exp(-late / site.decay)
    for clause in site.clauses:
        rows = zip(orders, earned, late, strict=True)
        earned = np.array([clause.worth(order.id, row, by) for order, row, by in rows])
    carried_TN = ((trips.sets_T[:, None] >> np.arange(len(orders))) & 1).astype(np.float64)

    units = np.array([order.units for order in orders])
    release = np.array([order.release for order in orders])
    walked_a_unit = trips.walked_T / (carried_TN @ units)
    cheapest = np.where(carried_TN > 0.0, walked_a_unit[:, None], np.inf).min(axis=0)
    quickest = np.where(carried_TN > 0.0, trips.lasts_T[:, None], latest).min(axis=0)
    shipped_SN = ((np.arange(1 << len(orders))[:, None] >> np.arange(len(orders))) & 1) > 0
    open_SN = (~shipped_SN).astype(np.float64)
    for clause in site.clauses:
        # Orders that pay only together may be paid by a trip with any of them.
        if clause.consignment:
            group_N = np.array([order.id in clause.consignment for order in orders])
            cheapest[group_N], quickest[group_N] = 0.0, quickest[group_N].min()
            open_SN[np.outer(~shipped_SN[:, group_N].all(axis=1), group_N)] = 1.0
    back = np.minimum(np.maximum(times[:, None], release) + quickest, latest)
    hope_UN = earned[np.arange(len(orders)), back] - site.walk_cost * units * cheapest

    stocked_S = np.ones(len(open_SN), dtype=bool)
    if stock is not None:
        slots = list(needs(orders))
        wanted = np.array([[dict(order.lines).get(slot, 0) for slot in slots] for order in orders])
        enough_SK = shipped_SN @ wanted <= np.array([stock[slot] for slot in slots])
        stocked_S = np.asarray(enough_SK.all(axis=1), dtype=bool)
    gain = _gain(site, orders, trips, carried_TN, earned)
    return _Outlook(start_TU, gain, np.maximum(hope_UN, 0.0), open_SN, stocked_S)


def _gain(
    site: PickingSite, orders: Sequence[Order], trips: Trips, carried_TN: Floats, earned_NU: Floats
) -> Callable[[int, Ints, Ints], Floats]:
    """Return the function from what was shipped before, trips and finish times to earnings."""
    clauses, steps_T = site.clauses, site.walk_cost * trips.walked_T
    if not clauses:
        gain_TU: Floats = carried_TN @ earned_NU - steps_T[:, None]
        return lambda _shipped, trip_M, finish: np.asarray(gain_TU[trip_M, finish])
    names = [order.id for order in orders]

    def gain(shipped: int, trip_M: Ints, finish: Ints) -> Floats:
        before = frozenset([name for place, name in enumerate(names) if shipped >> place & 1])
        ids_M = [trips.ids[trip] for trip in trip_M.tolist()]
        earning = [paid(clauses, before, ids) for ids in ids_M]
        paid_MN = np.array([[name in each for name in names] for each in earning], dtype=float)
        paid_MN = paid_MN.reshape(len(ids_M), len(names))
        fine_M = np.array([fines(clauses, before, ids) for ids in ids_M])
        earned = (earned_NU.T[finish] * paid_MN).sum(axis=-1)
        return np.asarray(earned - steps_T[trip_M] - fine_M)

    return gain


def _value_of_some_plan(trips: Trips, outlook: _Outlook, free: int, none: int, most: int) -> float:
    """Return the value of a good plan, found by keeping a few promising ones trip by trip."""
    shipped_B = np.array([none])
    free_B = np.array([free])
    value_B = np.zeros(1)
    best = 0.0
    all_T = np.arange(len(trips.sets_T))
    for _ in range(most):
        sets_BT = shipped_B[:, None] | trips.sets_T
        fits_BT = (shipped_B[:, None] & trips.sets_T == 0) & outlook.stocked_S[sets_BT]
        if not fits_BT.any():
            return best
        finish_BT = outlook.start_TU[all_T, free_B[:, None]] + trips.lasts_T
        value_BT = np.full(fits_BT.shape, -np.inf)
        for number, shipped in enumerate(shipped_B.tolist()):
            trip_M = np.flatnonzero(fits_BT[number])
            gain_M = outlook.gain(shipped, trip_M, finish_BT[number, trip_M])
            value_BT[number, trip_M] = value_B[number] + gain_M
        best = max(best, float(value_BT.max()))
        promise_BT = value_BT + outlook.hope(sets_BT, finish_BT)
        kept = np.argsort(-promise_BT, axis=None)[: min(_BEAM, int(fits_BT.sum()))]
        row, trip = np.divmod(kept, len(trips.sets_T))
        shipped_B, value_B = sets_BT[row, trip], value_BT[row, trip]
        free_B = finish_BT[row, trip]
    return best


def _extend(
    reached: dict[int, list[_Label]],
    shipped: int,
    trips: Trips,
    outlook: _Outlook,
    least: float,
    *,
    counted: bool,
) -> None:
    """Add to `reached` where a trip leads from the labels of `shipped`, if `least` is in reach."""
    labels = reached[shipped]
    sets_T = trips.sets_T | shipped
    trip_M = np.flatnonzero((trips.sets_T & shipped == 0) & outlook.stocked_S[sets_T])
    free_K = np.array([label.free for label in labels])
    cost_K = np.array([label.cost if label.left else np.inf for label in labels])
    start_KM = outlook.start_TU[trip_M, free_K[:, None]]
    finish_KM = start_KM + trips.lasts_T[trip_M]
    cost_KM = cost_K[:, None] - outlook.gain(shipped, trip_M, finish_KM)
    hope_KM = outlook.hope(sets_T[trip_M], finish_KM)
    found = np.nonzero(hope_KM - cost_KM >= least)
    trip_F = trip_M[found[1]]
    for target, before, *made in zip(
        sets_T[trip_F].tolist(),
        found[0].tolist(),
        finish_KM[found].tolist(),
        cost_KM[found].tolist(),
        trip_F.tolist(),
        start_KM[found].tolist(),
        strict=True,
    ):
        finish, cost, trip, start = made
        left = labels[before].left - counted
        reached.setdefault(target, []).append(_Label(finish, cost, trip, before, start, left))


def _undominated(labels: Sequence[_Label]) -> list[_Label]:
    """Return the labels that no other beats in cost while free as early, earliest first."""
    kept: list[_Label] = []
    for label in sorted(labels):
        if not any(rival.cost <= label.cost and rival.left >= label.left for rival in kept):
            kept.append(label)
    return kept


def _legs(
    labels: Mapping[int, Sequence[_Label]],
    shipped: int,
    number: int,
    trips: Trips,
    orders: Sequence[Order],
    none: int,
) -> tuple[Leg, ...]:
    """Read a plan back from its last label to the one of the set `none`, where it began."""
    legs: list[Leg] = []
    while shipped != none:
        label = labels[shipped][number]
        chosen = int(trips.sets_T[label.trip])
        ids = tuple(order.id for i, order in enumerate(orders) if chosen >> i & 1)
        finish = label.start + int(trips.lasts_T[label.trip])
        legs.append(Leg(label.start, finish, ids, trips.stops[label.trip]))
        shipped ^= chosen
        number = label.before
    return tuple(reversed(legs))


def commands(legs: Sequence[Leg], free: int = 0) -> list[Command]:
    """Return the commands that carry out a plan.

    Args:
        legs: trips by start.
        free: when the picker is free at first.
    """
    written: list[Command] = []
    for leg in legs:
        while free < leg.start:
            wait = Wait(min(leg.start - free, MOST_WAIT))
            written.append(wait)
            free += wait.time
        written.append(Trip(leg.ids, leg.stops))
        free = leg.finish
    return written


def best_command(
    state: PickingState, orders: Sequence[Order], most: int | None = None
) -> Command | None:
    """Return the first command of the best plan for `orders` from here on; `None` to ship none.

    Args:
        state: the state of picking.
        orders: the orders planned for, their releases being known.
        most: most trips, at least 1; `None` for no limit.
    """
    plan = _best_from(state, orders, most)
    return next(iter(commands(plan.legs, state.now)), None)


def value_to_come(state: PickingState, trips: int) -> float:
    """Return the most that open orders, all of them released, add in at most `trips` trips."""
    return _best_from(state, list(state.open.values()), trips).value if trips else 0.0


def _best_from(state: PickingState, orders: Sequence[Order], most: int | None) -> PickingPlan:
    """Return the best plan from a state on; more trips than orders are no limit."""
    gone = state.gone if state.site.clauses else ()
    return best_plan(
        state.site,
        orders,
        stock=state.stock,
        free=state.now,
        gone=[order for order in state.orders if order.id in gone],
        most=None if most is None or most >= len(orders) else most,
    )


def solve(instance: Mapping[str, Any], _rng: np.random.Generator, _outcomes: Any) -> dict[str, Any]:
    """Return optimum, reference and the best plan of a shift.

    The reference ships one order at a time, or nothing where that earns less than nothing.
    """
    site, orders, stock = read_shift(instance)
    best = best_plan(site, orders, stock=stock)
    plan = commands(best.legs)
    if sum(len(leg.ids) for leg in best.legs) < len(orders):
        plan.append(EndShift())
    state = PickingState(site, orders, None if stock is None else dict(stock))
    return {
        "optimum": best.value,
        "reference": max(follow(singles, state), 0.0),
        "plan": [*map(write_pick, plan)],
    }
