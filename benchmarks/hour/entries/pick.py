"""warehouse:pick, 2026-11-27, 2 minutes: exact tours, and labels over sets of shipped orders.

Written from prompts and 60 train Tasks alone.

Method: exact joint order batching, picker routing and trip sequencing. All orders are known at
time 0 and nothing is drawn, so a Task is solved to the optimum: every set of open orders that
fits the cart gets its shortest tour (Held-Karp dynamic programming for the travelling salesman),
then a label-setting dynamic programme over the set of shipped orders keeps the Pareto front of
(time, money), which loses nothing because every order is worth less the later it is back.
Stopping is allowed in every set, so orders that no longer pay for their walk stay unshipped.
"""

import math
import re
from functools import cache, lru_cache
from typing import NamedTuple

Slot = tuple[int, int]
DEPOT: Slot = (0, 0)


class Order(NamedTuple):
    """One line of the list of orders."""

    name: str
    value: float
    due: int
    units: int
    slots: frozenset[Slot]


class Rules(NamedTuple):
    """The numbers that the first text states."""

    capacity: int
    step_cost: float
    decay: float
    turn: int  # i + j around the front against turn - i - j around the back


class Trip(NamedTuple):
    """A set of orders (as bits) and its shortest tour."""

    mask: int
    walk: int
    duration: int
    tour: tuple[Slot, ...]


class Label(NamedTuple):
    """A way to have shipped a set of orders: when, for how much, and by which first trip."""

    time: int
    money: float
    first: Trip | None


def find_number(pattern: str, text: str, default: float) -> float:
    """The number that `pattern` captures in `text`, or `default`."""
    found = re.search(pattern, text)
    return float(found.group(1)) if found else default


def read_rules(text: str) -> Rules:
    """Read capacity, price of a step, decay and the way around the back."""
    return Rules(
        capacity=int(find_number(r"carries at most (\d+) unit", text, 7)),
        step_cost=find_number(r"step costs \$(\d+(?:\.\d+)?)", text, 0.02),
        decay=find_number(r"exp\(-x/(\d+(?:\.\d+)?)\)", text, 30),
        turn=int(find_number(r"(\d+)-i-j", text, 18)),
    )


def read_orders(text: str) -> list[Order]:
    """Read the list of orders."""
    orders = []
    for name, value, due, picks in re.findall(
        r"^(\w+) \$(\d+(?:\.\d+)?) due (\d+)[^:\n]*: (.+)$", text, re.MULTILINE
    ):
        parts = re.findall(r"(\d+)@A(\d+)-(\d+)", picks)
        slots = frozenset((int(aisle), int(row)) for _, aisle, row in parts)
        units = sum(int(count) for count, _, _ in parts)
        orders.append(Order(name, float(value), int(due), units, slots))
    return orders


class Planner:
    """Plans one Task; tours are kept between turns."""

    def __init__(self, text: str) -> None:
        self.rules = read_rules(text)
        self.orders = read_orders(text)
        self.slots = sorted(set().union(*(order.slots for order in self.orders)))
        self.index = {slot: place for place, slot in enumerate(self.slots)}
        self.from_depot = [self.distance(DEPOT, slot) for slot in self.slots]
        self.between = [[self.distance(a, b) for b in self.slots] for a in self.slots]
        self.paths: dict[tuple[int, int], tuple[int, int]] = {}
        self.trips = self.list_trips()

    def distance(self, a: Slot, b: Slot) -> int:
        """Steps from slot to slot."""
        if a[0] == b[0]:
            return abs(a[1] - b[1])
        rows = a[1] + b[1]
        return 2 * abs(a[0] - b[0]) + min(rows, self.rules.turn - rows)

    def path(self, mask: int, last: int) -> tuple[int, int]:
        """Shortest walk from the depot through `mask` that ends at `last`, and the slot before."""
        key = (mask, last)
        if key not in self.paths:
            rest = mask & ~(1 << last)
            row = self.between[last]
            best = (self.from_depot[last], -1)
            if rest:
                best = min((self.path(rest, k)[0] + row[k], k) for k in bits(rest))
            self.paths[key] = best
        return self.paths[key]

    def tour(self, mask: int) -> tuple[int, tuple[Slot, ...]]:
        """Length and slots of the shortest round from the depot through `mask`."""
        length, last = min((self.path(mask, k)[0] + self.from_depot[k], k) for k in bits(mask))
        walk = []
        while last >= 0:
            walk.append(self.slots[last])
            before = self.path(mask, last)[1]
            mask &= ~(1 << last)
            last = before
        return length, tuple(walk)

    def list_trips(self) -> list[Trip]:
        """Every set of orders that the cart holds, with its shortest tour."""
        trips = []
        for mask in range(1, 1 << len(self.orders)):
            chosen = [self.orders[k] for k in bits(mask)]
            units = sum(order.units for order in chosen)
            if units <= self.rules.capacity:
                slots = frozenset().union(*(order.slots for order in chosen))
                length, walk = self.tour(sum(1 << self.index[slot] for slot in slots))
                trips.append(Trip(mask, length, length + units, walk))
        return trips

    def gain(self, trip: Trip, back: int) -> float:
        """What a trip that is back at `back` earns, less its walk."""
        money = -self.rules.step_cost * trip.walk
        for k in bits(trip.mask):
            order = self.orders[k]
            money += order.value * math.exp(-max(0, back - order.due) / self.rules.decay)
        return money

    def best_first(self, time: int, still: int) -> Trip | None:
        """First trip of a best plan for the open orders `still`; None where none pays."""
        trips = [trip for trip in self.trips if trip.mask & still == trip.mask]
        gains: dict[tuple[int, int], float] = {}
        labels: dict[int, list[Label]] = {0: [Label(time, 0.0, None)]}
        best = labels[0][0]
        for shipped in range(still + 1):
            front = pareto(labels.get(shipped, []))
            best = max([best, *front], key=lambda label: label.money)
            for trip in trips if front else []:
                if trip.mask & shipped:
                    continue
                reached = labels.setdefault(shipped | trip.mask, [])
                for label in front:
                    back = label.time + trip.duration
                    key = (trip.mask, back)
                    if key not in gains:
                        gains[key] = self.gain(trip, back)
                    reached.append(Label(back, label.money + gains[key], label.first or trip))
        return best.first

    def reply(self, time: int, names: set[str]) -> str:
        """The reply at `time` with the open orders `names`."""
        still = sum(1 << k for k, order in enumerate(self.orders) if order.name in names)
        trip = self.best_first(time, still)
        if trip is None:
            return "DONE"
        orders = ", ".join(self.orders[k].name for k in bits(trip.mask))
        return f"TRIP {orders}: " + ", ".join(f"A{aisle}-{row}" for aisle, row in trip.tour)


@cache
def bits(mask: int) -> tuple[int, ...]:
    """Places of the bits that are set."""
    return tuple(k for k in range(mask.bit_length()) if mask >> k & 1)


def pareto(labels: list[Label]) -> list[Label]:
    """The labels that no other beats in both time and money."""
    front: list[Label] = []
    for label in sorted(labels, key=lambda one: (one.time, -one.money)):
        if not front or label.money > front[-1].money + 1e-9:
            front.append(label)
    return front


@lru_cache(maxsize=1)
def planner(text: str) -> Planner:
    """The planner of a Task, made at its first turn."""
    return Planner(text)


def reply(texts: list[str], replies: list[str]) -> str:
    """Reply to the newest text."""
    plan = planner(texts[0])
    time = int(find_number(r"It is time (\d+)", texts[-1], 0))
    still = re.search(r"Open orders: ([^.]*)\.", texts[-1])
    names = set(still.group(1).split(", ")) if still else {order.name for order in plan.orders}
    return plan.reply(time, names)
