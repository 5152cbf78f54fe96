"""warehouse:pick_clauses, 2026-11-27, 5 minutes: exact dynamic program over sets of shipped orders.

Written from prompts and 60 train Tasks alone.

The game is deterministic: multi-trip order batching and sequencing on one picker, with side terms.
Each set of orders that fits into one trip gets its shortest tour by Held-Karp. A plan is then a
partition of the orders into a sequence of trips, found by label-setting dynamic programming over
the set of orders shipped: a label is (time, total so far), and dominated labels are dropped. The
terms need no more than that: a consignment is paid by the trip that completes it, the fine on the
first trip falls on the empty set alone, fines on mixed trips and closed spans hang on the trip.
Since leaving later never helps, the search is exact if the terms are read rightly; they are read by
the orders, aisles, amounts and times they name rather than by their wording. It plans anew each
turn.
"""

import math
import re
from dataclasses import dataclass, field
from functools import lru_cache

Slot = tuple[int, int]
DEPOT: Slot = (0, 0)
COUNT_WORDS = {
    "twice": 2,
    "double": 2,
    "doubled": 2,
    "twofold": 2,
    "thrice": 3,
    "triple": 3,
    "tripled": 3,
    "threefold": 3,
    "fourfold": 4,
    "quadruple": 4,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
}
NAME_LIST = re.compile(r"\bO\d+(?:(?:, (?:and |or )?| and | or | & )O\d+)*")


@dataclass
class Order:
    """One line of the list of orders."""

    value: float
    due: int
    ready: int
    picks: dict[Slot, int]
    times: float = 1.0


@dataclass
class Shop:
    """The prompt, read."""

    orders: dict[str, Order]
    capacity: int = 7
    step_cost: float = 0.02
    decay: float = 30.0
    rows: int = 8
    gap: int = 2
    groups: list[int] = field(default_factory=list)
    clashes: list[tuple[int, int, float]] = field(default_factory=list)
    first: list[tuple[int, float]] = field(default_factory=list)
    closed: list[tuple[int, int]] = field(default_factory=list)
    blocked: list[tuple[int, int, int]] = field(default_factory=list)

    def bits(self, names: list[str]) -> int:
        """The set of the named orders, as bits in the order of the list."""
        known = list(self.orders)
        return sum(1 << known.index(name) for name in dict.fromkeys(names) if name in known)


@dataclass
class Trip:
    """A set of orders that fits into one trip, with its shortest tour."""

    bits: int
    names: list[str]
    tour: list[Slot]
    length: int
    cost: float
    ready: int
    spans: list[tuple[int, int]]

    def leave(self, now: int) -> int:
        """The first time from now on at which the trip can leave; the spans are sorted."""
        at = max(now, self.ready)
        for start, end in self.spans:
            if start <= at < end:
                at = end
        return at


def number(pattern: str, text: str, default: float) -> float:
    """The number that a pattern finds, or the default."""
    found = re.search(pattern, text)
    return float(found.group(1)) if found else default


def read_shop(prompt: str) -> Shop:
    """Reads the rules, the orders and the terms."""
    orders = {}
    terms = []
    for line in prompt.splitlines():
        head = re.match(r"(O\d+) \$([\d.]+) due (\d+)(.*)", line)
        if head:
            picks: dict[Slot, int] = {}
            for units, aisle, row in re.findall(r"(\d+)@A(\d+)-(\d+)", head.group(4)):
                slot = (int(aisle), int(row))
                picks[slot] = picks.get(slot, 0) + int(units)
            ready = re.match(r"\D*(\d+)[^@]*:", head.group(4))
            orders[head.group(1)] = Order(
                float(head.group(2)), int(head.group(3)), int(ready.group(1)) if ready else 0, picks
            )
        elif orders:
            terms.append(line)
    shop = Shop(
        orders,
        capacity=int(number(r"carries at most (\d+)", prompt, 7)),
        step_cost=number(r"step costs \$([\d.]+\d)", prompt, 0.02),
        decay=number(r"exp\(-x/(\d+)\)", prompt, 30.0),
        rows=int(number(r"rows 1 to (\d+)", prompt, 8)),
        gap=int(number(r"it is (\d+) steps for each aisle", prompt, 2)),
    )
    for line in terms:
        if line.startswith("None of them refuses") or line.startswith("It is time"):
            break
        read_term(shop, line)
    return shop


def read_term(shop: Shop, line: str) -> None:
    """Reads one term by what it names: orders, aisles, a fine, a factor, times."""
    lists = [re.findall(r"O\d+", found.group()) for found in NAME_LIST.finditer(line)]
    aisles = [int(found) for found in re.findall(r"\bA(\d+)\b", line)]
    fine = re.search(r"\$(\d+(?:\.\d+)?)", line)
    rest = re.sub(r"\b[OA]\d+\b|\$\d+(\.\d+)?", " ", line)
    if fine and lists:
        read_fine(shop, lists, float(fine.group(1)))
    elif lists:
        known = [name for names in lists for name in names if name in shop.orders]
        read_order_term(shop, known, rest)
    else:
        span = read_span(rest)
        if span and aisles:
            shop.blocked += [(aisle, *span) for aisle in aisles]
        elif span:
            shop.closed.append(span)


def read_fine(shop: Shop, lists: list[list[str]], fine: float) -> None:
    """A fine on two sets in one trip, or on a first trip without some order."""
    if len(lists) >= 2:
        sets = [shop.bits(names) for names in lists]
        shop.clashes.append((sets[0], sets[1], fine))
    else:
        shop.first.append((shop.bits(lists[0]), fine))


def read_order_term(shop: Shop, names: list[str], rest: str) -> None:
    """A factor on orders in time, a time of release, or orders that count as back together."""
    numbers = [int(found) for found in re.findall(r"\d+", rest)]
    words = [
        COUNT_WORDS[word] for word in re.findall(r"[a-z]+", rest.lower()) if word in COUNT_WORDS
    ]
    factors = re.search(r"time|value|earn|worth|pay|count", rest.replace("units of time", ""))
    if numbers and not (factors and numbers[0] < 10):
        for name in names:
            shop.orders[name].ready = max(shop.orders[name].ready, numbers[0])
    elif numbers or (words and "late" in rest + " late" * ("on time" in rest)):
        for name in names:
            shop.orders[name].times *= (numbers or words)[0]
    elif len(names) > 1:
        shop.groups.append(shop.bits(names))


def read_span(rest: str) -> tuple[int, int] | None:
    """A span of time, given by its ends or by its start and its length."""
    numbers = [int(found) for found in re.findall(r"\d+", rest)]
    if not numbers:
        return None
    if len(numbers) == 1:
        return (0, numbers[0])
    length = re.search(r"\b[Ff]or (?:the next )?(\d+)|\b(\d+) units of time", rest)
    if length:
        span = int(length.group(1) or length.group(2))
        start = next((found for found in numbers if found != span), span)
        return (start, start + span)
    return (numbers[0], numbers[1])


def distance(shop: Shop, one: Slot, two: Slot) -> int:
    """Steps from slot to slot."""
    if one[0] == two[0]:
        return abs(one[1] - two[1])
    rows = one[1] + two[1]
    return shop.gap * abs(one[0] - two[0]) + min(rows, 2 * (shop.rows + 1) - rows)


def held_karp(out: list[int], steps: list[list[int]]) -> dict[tuple[int, int], tuple[int, int]]:
    """By slots seen and the last of them: the shortest walk from the depot, and the slot before."""
    size = len(out)
    best: dict[tuple[int, int], tuple[int, int]] = {(1 << i, i): (out[i], -1) for i in range(size)}
    for seen in range(1, 1 << size):
        inside = [i for i in range(size) if seen >> i & 1]
        if len(inside) > 1:
            for last in inside:
                best[seen, last] = min(
                    (best[seen ^ (1 << last), i][0] + steps[i][last], i)
                    for i in inside
                    if i != last
                )
    return best


def shortest_tour(shop: Shop, slots: list[Slot]) -> tuple[int, list[Slot]]:
    """The shortest tour from the depot through all slots and back, and its length."""
    size = len(slots)
    steps = [[distance(shop, one, two) for two in slots] for one in slots]
    out = [distance(shop, DEPOT, slot) for slot in slots]
    best = held_karp(out, steps)
    seen = (1 << size) - 1
    length, last = min((best[seen, i][0] + out[i], i) for i in range(size))
    tour = []
    while last >= 0:
        tour.append(slots[last])
        seen, last = seen ^ (1 << last), best[seen, last][1]
    return length, tour[::-1]


def make_trip(shop: Shop, names: list[str]) -> Trip:
    """The trip with these orders: tour, time, cost with its fines, and when it may leave."""
    bits = shop.bits(names)
    picked = [shop.orders[name] for name in names]
    slots = sorted({slot for order in picked for slot in order.picks})
    walked, tour = shortest_tour(shop, slots)
    cost = shop.step_cost * walked
    cost += sum(fine for one, two, fine in shop.clashes if bits & one and bits & two)
    aisles = {aisle for aisle, _ in slots}
    spans = shop.closed + [(start, end) for aisle, start, end in shop.blocked if aisle in aisles]
    units = sum(sum(order.picks.values()) for order in picked)
    ready = max(order.ready for order in picked)
    return Trip(bits, names, tour, walked + units, cost, ready, sorted(spans))


@lru_cache(maxsize=2)
def read_all(prompt: str) -> tuple[Shop, list[Trip]]:
    """The shop and all its trips, worked out once."""
    shop = read_shop(prompt)
    known = list(shop.orders)
    loads = [sum(order.picks.values()) for order in shop.orders.values()]
    trips = []
    for bits in range(1, 1 << len(known)):
        inside = [i for i in range(len(known)) if bits >> i & 1]
        if sum(loads[i] for i in inside) <= shop.capacity:
            trips.append(make_trip(shop, [known[i] for i in inside]))
    return shop, trips


class Planner:
    """Label-setting search over the sets of orders shipped."""

    def __init__(self, shop: Shop, trips: list[Trip], trips_left: int) -> None:
        self.shop = shop
        self.trips = trips
        self.trips_left = trips_left
        self.orders = list(shop.orders.values())
        self.needs = []
        for index in range(len(self.orders)):
            mine = 1 << index
            for group in shop.groups:
                if group >> index & 1:
                    mine |= group
            self.needs.append(mine)
        self.paying: dict[tuple[int, int], list[int]] = {}

    def earned(self, before: int, after: int, back: int) -> float:
        """What a trip back at this time is paid, for the orders that it completes."""
        key = (before, after)
        if key not in self.paying:
            self.paying[key] = [
                i
                for i, need in enumerate(self.needs)
                if need & after == need and need & before != need
            ]
        total = 0.0
        for index in self.paying[key]:
            order = self.orders[index]
            late = back - order.due
            if late <= 0:
                total += order.value * order.times
            else:
                total += order.value * math.exp(-late / self.shop.decay)
        return total

    def first_fine(self, trip: Trip) -> float:
        """The fines of a first trip that lacks an order that has to be in it."""
        return sum(fine for bits, fine in self.shop.first if bits & trip.bits != bits)

    def best_first(self, shipped: int, now: int) -> Trip | None:
        """The first trip of the best plan, or None where it is best to stop."""
        everything = (1 << len(self.orders)) - 1
        labels: dict[int, list[tuple[int, float, int, Trip | None]]] = {
            shipped: [(now, 0.0, 0, None)]
        }
        best: tuple[float, Trip | None] = (0.0, None)
        for before in range(shipped, everything + 1):
            if before not in labels:
                continue
            front = pareto(labels.pop(before))
            for _, total, _, first in front:
                if total > best[0] + 1e-9:
                    best = (total, first)
            self.extend(before, front, labels)
        return best[1]

    def extend(
        self,
        before: int,
        front: list[tuple[int, float, int, Trip | None]],
        labels: dict[int, list[tuple[int, float, int, Trip | None]]],
    ) -> None:
        """Sends each trip that is still open from each label of a set."""
        for trip in self.trips:
            if trip.bits & before:
                continue
            after = before | trip.bits
            cost = trip.cost + (0.0 if before else self.first_fine(trip))
            target = labels.setdefault(after, [])
            for now, total, count, first in front:
                if count < self.trips_left:
                    back = trip.leave(now) + trip.length
                    gain = self.earned(before, after, back) - cost
                    target.append((back, total + gain, count + 1, first or trip))


def pareto(
    labels: list[tuple[int, float, int, Trip | None]],
) -> list[tuple[int, float, int, Trip | None]]:
    """The labels that no other beats in time and in total."""
    front = []
    highest = -math.inf
    for label in sorted(labels, key=lambda label: (label[0], -label[1])):
        if label[1] > highest + 1e-9:
            front.append(label)
            highest = label[1]
    return front


def reply(texts: list[str], replies: list[str]) -> str:
    """The next trip of the best plan from here."""
    shop, trips = read_all(texts[0])
    newest = texts[-1]
    now = int(number(r"It is time (\d+)", newest, 0))
    shipped = 0
    if len(texts) > 1:
        line = re.search(r"Open orders: ([^.]*)", newest)
        open_bits = shop.bits(re.findall(r"O\d+", line.group(1) if line else ""))
        shipped = ((1 << len(shop.orders)) - 1) & ~open_bits
    trip = Planner(shop, trips, 12 - len(replies)).best_first(shipped, now)
    if trip is None:
        return "DONE"
    walk = ", ".join(f"A{aisle}-{row}" for aisle, row in trip.tour)
    return f"TRIP {','.join(trip.names)}: {walk}"
