"""A shift lead that knows nothing but the full prompt: it parses, keeps its own books and plans.

What each text shows must follow from the texts before it and the replies.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

from tests.contract.planners.landlord import Landlord
from tests.contract.planners.shifts import Floor, Wanted, best_trips
from tests.contract.planners.terms import read_terms

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_NO_ROOM = 1e9
_BLIND_WAIT = 5
"""How long it waits where it knows of no order."""


class Lead:
    """Answers one episode, text by text. `reply` raises where a text contradicts the books."""

    def __init__(self) -> None:
        self._books: _Shift | _Stock | Landlord | None = None

    def reply(self, text: str) -> str:
        """Read a Turn and answer it."""
        if self._books is None:
            start = text[:40]
            kind = _Shift if "picking" in start else _Stock if "in stock" in start else Landlord
            self._books = kind(text)
        else:
            assert "Refused" not in text
            self._books.look(text)
        return self._books.decide()

    def end(self, text: str) -> None:
        """Read the last Turn."""
        assert self._books is not None
        assert "Refused" not in text
        if isinstance(self._books, _Shift):
            self._books.read_trip(text)


class _Shift:
    """A shift of picking: trips through open orders, and the clock."""

    def __init__(self, text: str) -> None:
        self.floor, self.now = _floor(text), 0
        self.open: dict[str, Wanted] = {}
        self.expected: tuple[int, int] | None = None
        self._read_orders(text)
        terms, orders = read_terms(text), list(self.open.values())
        self.plan = best_trips(self.floor, orders, self.now, terms) if terms else None

    def look(self, text: str) -> None:
        """Read a Turn."""
        self.read_trip(text)
        self._read_orders(text)
        assert int(_one(r"It is time (\d+)\.", text)) == self.now
        shown = _one(r"Open orders: (.+?)\.", text)
        assert set(re.findall(r"O\d+", shown)) == set(self.open)

    def _read_orders(self, text: str) -> None:
        """Add the orders that a text shows."""
        pattern = rf"^(?:New )?(O\d+) \${_NUMBER} due (\d+)(?: from (\d+))?: (.+)$"
        for name, value, due, release, lines in re.findall(pattern, text, re.M):
            pairs = tuple((slot, int(n)) for n, slot in re.findall(r"(\d+)@(A\d+-\d+)", lines))
            self.open[name] = Wanted(name, float(value), int(due), int(release or 0), pairs)

    def read_trip(self, text: str) -> None:
        """Compare the trip that a text reports with the one expected."""
        found = re.search(r"Walked (\d+), back t=(\d+)", text)
        assert (found is None) == (self.expected is None)
        assert found is None or (int(found[1]), int(found[2])) == self.expected

    def decide(self) -> str:
        """Return the next trip or wait; where there are clauses, that of a plan made once."""
        self.expected = None
        legs = self.plan
        if legs is None:
            legs = best_trips(self.floor, list(self.open.values()), self.now)
        if not legs:
            done = self.open or self.plan is not None
            return "DONE" if done else self._wait(_BLIND_WAIT)
        start, trip = legs[0]
        if start > self.now:
            return self._wait(start - self.now)
        del legs[0]
        self.now += trip.lasts
        self.expected = (trip.steps, self.now)
        for name in trip.names:
            del self.open[name]
        return f"TRIP {','.join(trip.names)}: {', '.join(trip.stops)}"

    def _wait(self, time: int) -> str:
        self.now += time
        return f"WAIT {time}"


@dataclass
class _Item:
    """An item as its line shows it, and its inventory: on hand, and due tomorrow."""

    sku: str
    shares: list[list[float]]
    lead: int
    slow: float
    room: int
    holding: float
    lost: float
    fixed: float
    leftover: float
    on_hand: int = 0
    due: int = 0
    position: int = 0

    @classmethod
    def of(cls, line: str, days: int) -> "_Item":
        """Read its line."""
        means = re.search(r"the mean by day ([\d., ]+);", line)
        by_day = [float(mean) for mean in means[1].split(", ")] if means else []
        assert len(by_day) == days
        costs = re.search(
            rf"a unit left {_NUMBER}, a unit lost {_NUMBER}, an order {_NUMBER}, "
            rf"a unit after the last day {_NUMBER}\.",
            line,
        )
        assert costs is not None
        slow = re.search(rf"\(with probability {_NUMBER} after (\d)\)", line)
        return cls(
            sku=_one(r"^(S\d+):", line),
            shares=[_poisson(mean) for mean in by_day],
            lead=int(_one(r"arrives after (\d) day", line)),
            slow=float(slow[1]) if slow else 0.0,
            room=int(_one(r"room (\d+)", line)),
            holding=float(costs[1]),
            lost=float(costs[2]),
            fixed=float(costs[3]),
            leftover=float(costs[4]),
        )

    def order(self, review: int, every: int) -> int:
        """Return the order of the least expected cost."""
        value = np.add.outer(np.arange(self.room + 1.0), np.arange(self.room + 1.0)) * self.leftover
        for day in reversed(range(review * every, len(self.shares))):
            costs = self._costs(day, value)
            decides = day % every == 0
            value = costs.min(axis=2) if decides else costs[:, :, 0]
        row = costs[self.on_hand, self.due]
        return int(np.flatnonzero(row <= row.min() + 1e-9)[0])

    def _costs(self, day: int, value: np.ndarray) -> np.ndarray:
        """Return expected costs by units on hand, due tomorrow and ordered today."""
        size, shares = self.room + 1, np.array(self.shares[day])
        x, units = np.ogrid[:size, : len(shares)]
        left = np.maximum(x - units, 0)
        paid = (self.holding * left + self.lost * np.maximum(units - x, 0)) @ shares
        leaves = np.zeros((size, size))
        np.add.at(leaves, (np.broadcast_to(x, left.shape), left), shares)
        late = self.slow if self.lead == 1 else 1.0
        x, d, o = np.ogrid[:size, :size, :size]
        slow = value[np.minimum(x + d, self.room), o]
        fast = value[np.minimum(x + d + o, self.room), 0]
        ahead = np.tensordot(leaves, late * slow + (1.0 - late) * fast, axes=1)
        cost = ahead + paid[:, None, None] + self.fixed * (o > 0)
        return np.where(x + d + o > self.room, _NO_ROOM, cost)


class _Together:
    """Items whose deliveries and room are shared: the best orders, one state at a time."""

    def __init__(self, items: list[_Item], delivery: float, room: int, every: int) -> None:
        self.items, self.delivery, self.room = items, delivery, room
        sizes = [item.room + 1 for item in items]
        self.states = list(np.ndindex(*sizes))
        value = np.array([sum(n * i.leftover for n, i in self._pairs(x)) for x in self.states])
        value = value.reshape(sizes)
        self.best: dict[tuple[int, ...], tuple[int, ...]] = {}
        for day in reversed(range(len(items[0].shares))):
            asked = [self._kept(item, day) for item in items]
            orders = self.states if day % every == 0 else [(0,) * len(items)]
            costs = {order: self._after(value, order, asked) for order in orders}
            value = np.zeros(sizes)
            for state in self.states:
                choices = [
                    (costs[order][state] + self._paid(order), order)
                    for order in orders
                    if all(x + o < size for x, o, size in zip(state, order, sizes, strict=True))
                    and sum(state) + sum(order) <= max(room, sum(state))
                ]
                least = min(cost for cost, _ in choices)
                value[state] = least
                review = (day // every, *state)
                self.best[review] = min(o for c, o in choices if c <= least + 1e-9)

    def _pairs(self, units: tuple[int, ...]) -> list[tuple[int, _Item]]:
        return list(zip(units, self.items, strict=True))

    def _paid(self, order: tuple[int, ...]) -> float:
        return sum(i.fixed for n, i in self._pairs(order) if n) + self.delivery * any(order)

    def _kept(self, item: _Item, day: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the chances of what is left by units on hand, and the cost of the day."""
        chances, cost = np.zeros((item.room + 1, item.room + 1)), np.zeros(item.room + 1)
        for x in range(item.room + 1):
            for units, share in enumerate(item.shares[day]):
                chances[x, max(x - units, 0)] += share
                over, short = max(x - units, 0), max(units - x, 0)
                cost[x] += share * (item.holding * over + item.lost * short)
        return chances, cost

    def _after(
        self,
        value: np.ndarray,
        order: tuple[int, ...],
        asked: list[tuple[np.ndarray, np.ndarray]],
    ) -> np.ndarray:
        """Return the expected cost by units on hand of an order, without what it costs itself."""
        moved = value[
            np.ix_(*(np.minimum(np.arange(i.room + 1) + n, i.room) for n, i in self._pairs(order)))
        ]
        for axis, (chances, _) in enumerate(asked):
            moved = np.moveaxis(np.tensordot(chances, moved, axes=(1, axis)), 0, axis)
        costs: np.ndarray = moved + sum(np.ix_(*(cost for _, cost in asked)))
        return costs


class _Stock:
    """A stretch of days of keeping stock."""

    def __init__(self, text: str) -> None:
        days = int(_one(r"in stock for (\d+) days", text))
        self.every = days // int(_one(r"You reply (\d+) times", text))
        self.items = _items(text, days)
        self.review = 0
        self._read(text)
        shared = re.search(rf"A delivery costs {_NUMBER}, .* not exceed (\d+) together", text)
        self.together = (
            _Together(self.items, float(shared[1]), int(shared[2]), self.every) if shared else None
        )

    def look(self, text: str) -> None:
        """Read a Turn."""
        self.review += 1
        assert int(_one(r"Morning of day (\d+)", text)) == self.review * self.every + 1
        before = [item.position for item in self.items]
        self._read(text)
        sold = [int(units) for units in re.findall(r"^Sold (\d+)", text, re.M)]
        for item, position, units in zip(self.items, before, sold, strict=True):
            assert item.position == position - units

    def decide(self) -> str:
        """Return the reorders."""
        if self.together is not None:
            state = (self.review, *(item.on_hand for item in self.items))
            return _reorders(self.items, list(self.together.best[state]))
        orders = [item.order(self.review, self.every) for item in self.items]
        return _reorders(self.items, orders)

    def _read(self, text: str) -> None:
        for item in self.items:
            _read_item(item, text)


def _items(text: str, days: int) -> list[_Item]:
    return [_Item.of(line, days) for line in re.findall(r"^S\d+: .+$", text, re.M)]


def _read_item(item: _Item, text: str) -> None:
    found = re.search(rf"{item.sku} has (\d+)(?: due (\d+))?$", text, re.M)
    assert found is not None
    item.on_hand, item.due = int(found[1]), int(found[2] or 0)
    item.position = item.on_hand + item.due


def _reorders(items: list[_Item], orders: list[int]) -> str:
    for item, units in zip(items, orders, strict=True):
        item.position += units
    lines = [
        f"REORDER {item.sku} {units}" for item, units in zip(items, orders, strict=True) if units
    ]
    return "\n".join(lines) or "REORDER NONE"


def _floor(text: str) -> Floor:
    """Read how trips are walked and what they cost."""
    last = _one(r"rows 1 to \d+.+?and (\d+)-i-j", text)

    def walk(one: str, other: str) -> int:
        (a, i), (b, j) = (
            map(int, slot[1:].split("-")) if slot else (0, 0) for slot in (one, other)
        )
        return abs(i - j) if a == b else 2 * abs(a - b) + min(i + j, int(last) - i - j)

    return Floor(
        walk,
        capacity=int(_one(r"carries at most (\d+) units", text)),
        step_cost=float(_one(rf"A step costs \${_NUMBER}\.", text)),
        decay=float(_one(rf"exp\(-x/{_NUMBER}\)", text)),
    )


def _poisson(mean: float) -> list[float]:
    shares = [math.exp(-mean)]
    while sum(shares) < 1.0 - 1e-10:
        shares.append(shares[-1] * mean / len(shares))
    return shares


def _one(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.M)
    assert len(found) == 1, (pattern, found)
    return str(found[0])
