"""Batches from the prompt alone: the shortest of all there are, by an exhaustive search."""

import re
from functools import cache
from itertools import combinations


class Batcher:
    """Answers an episode of order batching; raises where a text contradicts its books."""

    def __init__(self, text: str) -> None:
        found = re.search(
            r"rows 1 to (\d+);.*The walk along a row is ([\d.]+), from a cross-aisle to the nearest"
            r" row ([\d.]+), .* to the next ([\d.]+)\. .*carries at most (\d+) articles",
            text,
            re.S,
        )
        assert found is not None
        self.rows, self.capacity = int(found[1]), int(found[5])
        self.cell, self.margin, self.pitch = (float(found[n]) for n in (2, 3, 4))
        self.orders: dict[str, list[tuple[int, int]]] = {}
        for name, count, places in re.findall(r"^(O\d+), (\d+) articles?:(.+)$", text, re.M):
            pairs = re.findall(r"A(\d+)-(\d+)", places)
            self.orders[name] = [(int(aisle), int(row)) for aisle, row in pairs]
            assert len(pairs) == int(count)
        self.trips = self._best()
        self.expected = ""

    def look(self, text: str) -> None:
        """Read a Turn."""
        assert self.expected in text
        shown = re.findall(r"O\d+", text.partition("Orders left: ")[2])
        assert shown == [name for name in self.orders if any(name in trip for trip in self.trips)]

    def decide(self) -> str:
        """Return the next trip."""
        trip = self.trips.pop()
        articles = sum(len(self.orders[name]) for name in trip)
        self.expected = f"Walked {self.walk(trip):g}, {articles} of {self.capacity} articles."
        return f"TRIP {','.join(trip)}"

    def walk(self, trip: tuple[str, ...]) -> float:
        """Return the length of a trip, leg by leg."""
        aisles: dict[int, list[float]] = {}
        for name in trip:
            for aisle, row in self.orders[name]:
                aisles.setdefault(aisle, []).append(self.margin + self.cell * (row - 0.5))
        walked, here, front = 0.0, 0, True
        for number, aisle in enumerate(sorted(aisles), start=1):
            walked += self.pitch * (aisle - here)
            here = aisle
            if front and number == len(aisles):
                walked += 2.0 * max(aisles[aisle])
            else:
                walked += 2.0 * self.margin + self.cell * self.rows
                front = not front
        assert front
        return walked + self.pitch * here

    def _best(self) -> list[tuple[str, ...]]:
        """Try, for the first order left, every trip that it can be part of."""

        @cache
        def shortest(left: tuple[str, ...]) -> tuple[float, list[tuple[str, ...]]]:
            if not left:
                return 0.0, []
            found = []
            for trip in trips[left[0]]:
                if set(trip) <= set(left):
                    length, trips_after = shortest(tuple(n for n in left if n not in trip))
                    found.append((length + lengths[trip], [trip, *trips_after]))
            return min(found)

        names = list(self.orders)
        trips: dict[str, list[tuple[str, ...]]] = {name: [] for name in names}
        lengths: dict[tuple[str, ...], float] = {}
        for count in range(1, len(names) + 1):
            for trip in combinations(names, count):
                if sum(len(self.orders[name]) for name in trip) <= self.capacity:
                    trips[trip[0]].append(trip)
                    lengths[trip] = self.walk(trip)
        return shortest(tuple(names))[1]
