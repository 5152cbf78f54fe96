"""A shift lead that knows nothing but the full prompt: it reads the game, keeps books and plans.

What each text shows must follow from the texts before it and the replies. Plans are those of the
world's solvers, which `tests/warehouse` compares with trying everything.
"""

import re
from dataclasses import replace
from typing import Any

from tests.contract.planners.terms import read_terms
from tokengym.envs.warehouse.games.leasing.oracle import solve_lease
from tokengym.envs.warehouse.games.leasing.rules import CustomerKind, LeaseModel
from tokengym.envs.warehouse.games.picking.clauses import read_clauses
from tokengym.envs.warehouse.games.picking.oracle import best_command
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite
from tokengym.envs.warehouse.games.picking.rules import PickingState, Shipment
from tokengym.envs.warehouse.games.stock.oracle import Solution
from tokengym.envs.warehouse.games.stock.rules import Inventory, read_groups, read_items
from tokengym.envs.warehouse.grammar import (
    EndShift,
    Trip,
    Wait,
    write_pick,
    write_quote,
    write_reorder,
)
from tokengym.envs.warehouse.layout import AisleLayout

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BLIND_WAIT = 5
"""How long it waits where it knows of no order."""


class Lead:
    """Answers one episode, text by text. `reply` raises where a text contradicts the books."""

    def __init__(self) -> None:
        self._books: _Shift | _Stock | _Leases | None = None

    def reply(self, text: str) -> str:
        """Read a Turn and answer it."""
        if self._books is None:
            start = text[:40]
            kind = _Shift if "picking" in start else _Stock if "in stock" in start else _Leases
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
        self.state = PickingState(_site(text), [])
        self.trip: Shipment | None = None
        self._read_orders(text)
        clauses = [{**term, "words": ""} for term in read_terms(text)]
        known = frozenset(self.state.open)
        self.state.site = replace(self.state.site, clauses=read_clauses(clauses, known))

    def look(self, text: str) -> None:
        """Read a Turn."""
        self.read_trip(text)
        self._read_orders(text)
        assert int(_one(r"It is time (\d+)\.", text)) == self.state.now
        shown = _one(r"Open orders(?:: (?s:.+?)\.|, each with (?s:.+)\n)", text)
        assert set(re.findall(r"O\d+", shown)) == set(self.state.open)

    def _read_orders(self, text: str) -> None:
        """Add the orders that a text shows."""
        pattern = rf"^(?:New )?(O\d+) \${_NUMBER} due (\d+)(?: from (\d+))?: (.+)$"
        for name, value, due, release, lines in re.findall(pattern, text, re.M):
            pairs = [(slot, int(n)) for n, slot in re.findall(r"(\d+)@(A\d+-\d+)", lines)]
            shown = {"id": name, "value": float(value), "due": int(due), "lines": pairs}
            order = Order.of({**shown, "release": int(release or 0)})
            self.state.orders = [*self.state.orders, order]
            self.state.open[name] = order

    def read_trip(self, text: str) -> None:
        """Compare the trip that a text reports with the one expected."""
        found = re.search(r"Walked (\d+), back t=(\d+)", text)
        shown = found and (int(found[1]), int(found[2]))
        assert shown == (self.trip and (self.trip.walked, self.trip.finish))

    def decide(self) -> str:
        """Return the first reply of the best plan for the orders that are shown."""
        self.trip = None
        state = self.state
        command = best_command(state, [*state.open.values()])
        if command is None:
            command = EndShift() if state.open else Wait(_BLIND_WAIT)
        if isinstance(command, Wait):
            state.wait(command.time)
        if isinstance(command, Trip):
            done = state.trip(*command)
            assert isinstance(done, Shipment)
            self.trip = done
        return write_pick(command)


def _site(text: str) -> PickingSite:
    """Read how trips are walked and what they cost."""
    aisles, rows = re.search(r"aisles A0 to A(\d+)", text), int(_one(r"rows 1 to (\d+)", text))
    if aisles is not None:
        far = r"2 steps for each aisle further, plus the smaller of i\+j .+? and (\d+)-i-j"
        assert int(_one(far, text)) == 2 * (rows + 1)
    return PickingSite(
        AisleLayout(int(aisles[1]) + 1 if aisles else 1, rows),
        capacity=int(_one(r"carries at most (\d+) units", text)),
        walk_cost=float(_one(rf"A step costs \${_NUMBER}\.", text)),
        decay=float(_one(rf"exp\(-x/{_NUMBER}\)", text)),
    )


class _Stock:
    """A stretch of days of keeping stock."""

    def __init__(self, text: str) -> None:
        days = int(_one(r"in stock for (\d+) days", text))
        self.every = days // int(_one(r"You reply (\d+) times", text))
        shared = re.search(rf"A delivery costs {_NUMBER}, .* not exceed (\d+) together", text)
        both = {"delivery": float(shared[1]), "room": int(shared[2])} if shared else None
        items = [_item(line, text) for line in re.findall(r"^S\d+: .+$", text, re.M)]
        instance = {"days": days, "review": self.every, "items": items, "shared": both}
        self.inventories = [Inventory(item) for item in read_items(instance)]
        self.plans, at = list[Solution](), 0
        for joint in read_groups(instance):
            self.plans.append(Solution.of(joint, slice(at, at + len(joint.models))))
            at += len(joint.models)
        self.review, self.orders = 0, [0] * len(items)

    def look(self, text: str) -> None:
        """Read a Turn."""
        self.review += 1
        assert int(_one(r"Morning of day (\d+)", text)) == self.review * self.every + 1
        sold = [int(units) for units in re.findall(r"^Sold (\d+)", text, re.M)]
        for one, order, units in zip(self.inventories, self.orders, sold, strict=True):
            before = one.position
            one.on_hand, one.due = _held(one.item.sku, text)
            assert one.position == before + order - units

    def decide(self) -> str:
        """Return the reorders."""
        plans = [plan.best_orders(self.review, self.inventories) for plan in self.plans]
        self.orders = [units for plan in plans for units in plan]
        names = [one.item.sku for one in self.inventories]
        return write_reorder(list(zip(names, self.orders, strict=True)))


def _item(line: str, text: str) -> dict[str, Any]:
    sku, slow = line.partition(":")[0], re.search(rf"with probability {_NUMBER} after", line)
    costs = ("a unit left", "a unit lost", "an order", "a unit after the last day")
    names = ("holding", "lost", "fixed", "leftover")
    paid = [float(_one(rf"[:,] {cost} {_NUMBER}[,.]", line)) for cost in costs]
    means = map(float, _one(r"the mean by day ([\d., ]+);", line).split(", "))
    stock, due = _held(sku, text)
    return {
        **dict(zip(names, paid, strict=True)),
        **{"sku": sku, "stock": stock, "due": due, "demand": {"poisson": list(means)}},
        "lead": int(_one(r"arrives after (\d) day", line)),
        "slow": float(slow[1]) if slow else 0.0,
        "room": int(_one(r"room (\d+)", line)),
    }


def _held(sku: str, text: str) -> tuple[int, list[int]]:
    """Read the units of an item on hand, and due tomorrow and later."""
    found = re.search(rf"{sku} has (\d+)(?: due ([\d, ]+))?$", text, re.M)
    assert found is not None
    return int(found[1]), [int(units) for units in (found[2] or "").split(",") if units]


class _Leases:
    """Months of leasing."""

    def __init__(self, text: str) -> None:
        bays, self.last = map(
            int, _two(r"You lease out (\d+) bays of a warehouse for (\d+) months", text)
        )
        rows = re.findall(
            r"^([A-Z]): (\d+) bays? for (\d+) months?; would pay \$(\d+) to \$(\d+); "
            r"asks with the probability by month ([\d., ]+)\.$",
            text,
            re.M,
        )
        kinds = tuple(CustomerKind(name, *map(int, terms)) for name, *terms, _ in rows)
        odds = [map(float, row[-1].split(", ")) for row in rows]
        chances = tuple(zip(*odds, strict=True))
        self.longest = max(kind.months for kind in kinds)
        self.month, self.taken = 1, self._shown(text, 1, bays)
        self.model = LeaseModel(bays, kinds, chances, self.taken)
        self.price, self.who = 0, self._read(text)

    def look(self, text: str) -> None:
        """Read a Turn."""
        signed = re.search(r"^Signed for \$(\d+)\.", text, re.M)
        if signed is not None:
            assert int(signed[1]) == self.who.earns(self.price)
        self.taken = self.model.next_month(self.taken, self.who if signed else None)
        self.month += 1
        assert self._shown(text, self.month, self.model.bays) == self.taken
        self.who = self._read(text)

    def decide(self) -> str:
        """Quote the price that is worth most, or turn the customer away."""
        worth = solve_lease(self.model).quotes(self.month - 1, self.taken, self.who)
        self.price = worth.index(max(worth))
        return write_quote(self.price)

    def _shown(self, text: str, month: int, bays: int) -> tuple[int, ...]:
        """Return the bays that come back in 1, 2, ... months."""
        free, more = _two(
            rf"Month {month} of {self.last}\. Free bays: (\d+)((?:, \d+ more .+)?)\.", text
        )
        back = {int(then): int(n) for n, then in re.findall(r"(\d+) more from month (\d+)", more)}
        taken = tuple(back.get(month + after, 0) for after in range(1, self.longest))
        assert sum(back.values()) == sum(taken) == bays - int(free)
        return taken

    def _read(self, text: str) -> CustomerKind:
        name = _one(r"A customer of kind ([A-Z]) asks", text)
        (kind,) = (one for one in self.model.kinds if one.name == name)
        size = _two(r"of kind [A-Z] asks for (\d+) bays? for (\d+) months?\.", text)
        assert size == (str(kind.bays), str(kind.months))
        return kind


def _one(pattern: str, text: str) -> str:
    found = re.findall(pattern, text, re.M)
    assert len(found) == 1, (pattern, found)
    return str(found[0])


def _two(pattern: str, text: str) -> tuple[str, ...]:
    found = re.findall(pattern, text)
    assert len(found) == 1, (pattern, found)
    return tuple(found[0])
