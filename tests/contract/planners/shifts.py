"""The best trips for orders: an exact search of its own, apart from the world's oracle."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

from tests.contract.planners.terms import Terms

_BEAM = 60

Walk = Callable[[str, str], int]
"""Steps between two slots; the depot is ``""``."""


class Wanted(NamedTuple):
    """An order as its line shows it."""

    name: str
    value: float
    due: int
    release: int
    lines: tuple[tuple[str, int], ...]


class Trip(NamedTuple):
    """A trip: its orders as bits and names, its stops, steps, length and earliest start."""

    bits: int
    names: tuple[str, ...]
    stops: tuple[str, ...]
    steps: int
    lasts: int
    release: int


class Floor(NamedTuple):
    """Where trips are walked and what they cost."""

    walk: Walk
    capacity: int
    step_cost: float
    decay: float


def best_trips(
    floor: Floor, orders: Sequence[Wanted], free: int, terms: Terms | None = None
) -> list[tuple[int, Trip]]:
    """Return start and trip of the best plan from a time on, by start."""
    trips = _trips(floor, orders)
    groups = [
        terms.group if terms and order.name in terms.group else {order.name} for order in orders
    ]

    @cache
    def names_in(bits: int) -> frozenset[str]:
        return frozenset(order.name for place, order in enumerate(orders) if bits >> place & 1)

    def earned(bits: int, trip: Trip, finish: int) -> float:
        gone, names = names_in(bits), names_in(trip.bits)
        paid = terms.paid(gone, names) if terms else names
        total = -floor.step_cost * trip.steps - (terms.fine(gone, names) if terms else 0)
        for order in orders:
            if order.name in paid:
                total += _worth(floor, order, finish, terms)
        return total

    def leaves(at: int, trip: Trip) -> int:
        start = max(at, trip.release)
        return terms.leaves(trip.names, trip.stops, start) if terms else start

    soonest = [
        min((trip.lasts for trip in trips if group & {*trip.names}), default=math.inf)
        for group in groups
    ]

    @cache
    def hope(bits: int, now: int) -> float:
        """What the other orders can add at most, and those that wait for others to earn."""
        gone = names_in(bits)
        return sum(
            max(0.0, _worth(floor, order, max(now, order.release) + soon, terms))
            for order, soon, group in zip(orders, soonest, groups, strict=True)
            if not group <= gone and soon < math.inf
        )

    def steps(bits: int, at: int) -> list[tuple[int, int, float, Trip]]:
        found = []
        for trip in trips:
            if not bits & trip.bits:
                finish = leaves(at, trip) + trip.lasts
                found.append((bits | trip.bits, finish, earned(bits, trip, finish), trip))
        return found

    least = 0.0
    beam = [(0.0, 0, free)]
    while beam:
        reached = [
            (value + gain, both, at)
            for value, bits, now in beam
            for both, at, gain, _ in steps(bits, now)
        ]
        least = max([least, *(value for value, _, _ in reached)])
        reached.sort(key=lambda state: -state[0] - hope(state[1], state[2]))
        beam = reached[:_BEAM]

    labels: dict[int, dict[int, tuple[float, list[tuple[int, Trip]]]]] = {0: {free: (0.0, [])}}
    best: tuple[float, list[tuple[int, Trip]]] = (0.0, [])
    for bits in range(1 << len(orders)):
        for at, (value, plan) in _undominated(labels.pop(bits, {})).items():
            best = max(best, (value, plan), key=lambda found: found[0])
            if value + hope(bits, at) < least - 1e-9:
                continue
            for both, after, gain, trip in steps(bits, at):
                known = labels.setdefault(both, {})
                if after not in known or known[after][0] < value + gain:
                    known[after] = (value + gain, [*plan, (leaves(at, trip), trip)])
    return sorted(best[1], key=lambda leg: leg[0])


def _worth(floor: Floor, order: Wanted, finish: float, terms: Terms | None) -> float:
    if terms and order.name in terms.gold[0] and finish <= order.due:
        return order.value * terms.gold[1]
    return order.value * math.exp(-max(0.0, finish - order.due) / floor.decay)


def _undominated(
    labels: Mapping[int, tuple[float, list[tuple[int, Trip]]]],
) -> dict[int, tuple[float, list[tuple[int, Trip]]]]:
    kept: dict[int, tuple[float, list[tuple[int, Trip]]]] = {}
    for at in sorted(labels):
        if all(value < labels[at][0] for value, _ in kept.values()):
            kept[at] = labels[at]
    return kept


def _trips(floor: Floor, orders: Sequence[Wanted]) -> list[Trip]:
    @cache
    def shortest(left: frozenset[str], last: str) -> tuple[int, tuple[str, ...]]:
        """The shortest way from the depot through `left` to `last`."""
        if not left:
            return floor.walk("", last), ()
        found = []
        for before in sorted(left):
            steps, stops = shortest(left - {before}, before)
            found.append((steps + floor.walk(before, last), (*stops, before)))
        return min(found)

    trips = []
    for count in range(1, min(len(orders), floor.capacity) + 1):
        for places in combinations(range(len(orders)), count):
            chosen = [orders[place] for place in places]
            units = sum(number for order in chosen for _, number in order.lines)
            if units <= floor.capacity:
                steps, stops = shortest(
                    frozenset(slot for order in chosen for slot, _ in order.lines), ""
                )
                names = tuple(order.name for order in chosen)
                release = max(order.release for order in chosen)
                bits = sum(1 << place for place in places)
                trips.append(Trip(bits, names, stops, steps, steps + units, release))
    return trips
