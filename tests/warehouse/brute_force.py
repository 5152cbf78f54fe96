"""The best plan of a small shift by trying every sequence of trips, apart from the world's code.

It reads the plain form of an instance, walks every route of a trip, and works out what a sequence
of trips earns as a whole, from when each of them leaves and is back.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, pairwise, permutations
from typing import Any, NamedTuple

Instance = Mapping[str, Any]


class Leg(NamedTuple):
    """A trip that was walked."""

    ids: tuple[str, ...]
    leaves: int
    back: int
    steps: int


class Shift:
    """A shift of picking with clauses.

    Args:
        instance: its plain form.
        waits: whether a picker may also wait for a dock, an aisle or goods that need no waiting.
    """

    def __init__(self, instance: Instance, *, waits: bool = False) -> None:
        self.site, self.clauses = instance["site"], instance["clauses"]
        self.orders = {order["id"]: order for order in instance["orders"]}
        self.waits = waits
        self.steps = cache(self._steps)

    def best(self, *begun: Leg) -> float:
        """The most that any sequence of trips earns that begins with some."""
        return max(map(self.value, self._plans(begun)))

    def value(self, legs: Sequence[Leg]) -> float:
        """What a sequence of trips earns."""
        back = {name: leg.back for leg in legs for name in leg.ids}
        fines = 0
        for clause in self.clauses:
            if clause["kind"] == "customer":
                group = clause["orders"]
                all_back = [back.pop(name) for name in group if name in back]
                if len(all_back) == len(group):
                    back |= dict.fromkeys(group, max(all_back))
            if clause["kind"] == "apart":
                sides = {*clause["orders"]}, {*clause["others"]}
                mixed = [leg for leg in legs if all(side & {*leg.ids} for side in sides)]
                fines += clause["fine"] * len(mixed)
            if clause["kind"] == "first":
                fines += clause["fine"] * (bool(legs) and clause["order"] not in legs[0].ids)
        steps = sum(leg.steps for leg in legs)
        earned = sum(self._earned(name, at) for name, at in back.items())
        return float(earned - fines - self.site["walk_cost"] * steps)

    def _earned(self, name: str, back: int) -> float:
        order = self.orders[name]
        late = back - order["due"]
        if late > 0:
            return float(order["value"] * math.exp(-late / self.site["decay"]))
        gold = [c["factor"] for c in self.clauses if c["kind"] == "gold" and name in c["orders"]]
        return float(order["value"] * math.prod(gold))

    def _plans(self, legs: tuple[Leg, ...]) -> Iterator[tuple[Leg, ...]]:
        yield legs
        gone = [name for leg in legs for name in leg.ids]
        now = legs[-1].back if legs else 0
        open_now = [name for name in self.orders if name not in gone]
        later = sorted({clause["end"] for clause in self.clauses if clause.get("end", 0) > now})
        for count in range(1, len(open_now) + 1):
            for ids in combinations(open_now, count):
                if self.units(ids) > self.site["capacity"]:
                    continue
                steps = self.steps(ids)
                for start in [now, *later] if self.waits else [now]:
                    leaves = self.leaves(ids, start)
                    back = leaves + steps + self.units(ids)
                    yield from self._plans((*legs, Leg(ids, leaves, back, steps)))

    def units(self, ids: Sequence[str]) -> int:
        """The units of a trip."""
        return sum(units for name in ids for _, units in self.orders[name]["lines"])

    def leaves(self, ids: Sequence[str], time: int) -> int:
        """When a trip leaves that would leave at `time`."""
        while any(self._held(clause, ids, time) for clause in self.clauses):
            time += 1
        return time

    def _held(self, clause: Instance, ids: Sequence[str], time: int) -> bool:
        if clause["kind"] == "goods":
            return clause["order"] in ids and time < clause["end"]
        if clause["kind"] not in ("dock", "aisle"):
            return False
        aisles = {slot.split("-")[0] for name in ids for slot, _ in self.orders[name]["lines"]}
        concerned = clause["kind"] == "dock" or clause["aisle"] in aisles
        return concerned and clause["start"] <= time < clause["end"]

    def _steps(self, ids: tuple[str, ...]) -> int:
        slots = {slot for name in ids for slot, _ in self.orders[name]["lines"]}
        places = [tuple(map(int, slot[1:].split("-"))) for slot in slots]
        tours = ([(0, 0), *tour, (0, 0)] for tour in permutations(places))
        return min(sum(self._walk(p, q) for p, q in pairwise(tour)) for tour in tours)

    def _walk(self, p: Sequence[int], q: Sequence[int]) -> int:
        if p[0] == q[0]:
            return abs(p[1] - q[1])
        around = p[1] + q[1]
        rows = int(self.site["layout"]["rows"])
        return 2 * abs(p[0] - q[0]) + min(around, 2 * (rows + 1) - around)
