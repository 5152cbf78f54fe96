"""The rules of picking: clocks, trips, refusals, lateness. No text, no scores."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from tokengym.envs.warehouse.games.picking.clauses import closures, fines, leaves, paid
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite, needs
from tokengym.envs.warehouse.games.picking.routing import s_shape


class Shipment(NamedTuple):
    """A trip that was walked.

    Attributes:
        start: time it left the depot.
        finish: time it was back at the depot.
        walked: steps.
        earned: id, value earned and lateness of each order that it earned.
        stops: slots in the order they were walked.
        fined: fines of clauses.
    """

    start: int
    finish: int
    walked: int
    earned: tuple[tuple[str, float, int], ...]
    stops: tuple[str, ...]
    fined: float = 0.0

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the value itself, as `Immutable` does; a named tuple is made faster."""
        return self


class PickingState:
    """The state of picking a set of orders.

    A refused trip costs one time unit. `now` is the time of the next decision, `shipments` are the
    trips so far, `earned` and `walked` their value and steps, `fined` the fines of clauses,
    `refusals` the times and reasons of those refused, and `closed` is set when the lead ends the
    shift.

    Args:
        site: the site.
        orders: what is to be picked, all open at first.
        stock: units by slot, drawn down by trips; `None` if the slots never run out.
    """

    def __init__(
        self, site: PickingSite, orders: Sequence[Order], stock: dict[str, int] | None = None
    ) -> None:
        self.site = site
        self.stock = stock
        self.open: dict[str, Order] = {order.id: order for order in orders}
        self.earned = 0.0
        self.walked = 0
        self.fined = 0.0
        self.shipments: list[Shipment] = []
        self.refusals: list[tuple[int, str]] = []
        self.closed = False
        self.orders = orders
        self.now = 0

    @property
    def objective(self) -> float:
        """Value earned less fines and the cost of walking."""
        return self.earned - self.fined - self.site.walk_cost * self.walked

    @property
    def gone(self) -> frozenset[str]:
        """Ids of the orders that have left."""
        return frozenset([order.id for order in self.orders if order.id not in self.open])

    @property
    def over(self) -> bool:
        """Whether nothing more can be shipped, or the lead has ended the shift."""
        return self.closed or not self.can_ship()

    def known(self) -> Mapping[str, Order]:
        """Return the open orders that the lead knows of, by id."""
        if self.site.announced:
            return self.open
        return {name: order for name, order in self.open.items() if order.release <= self.now}

    def can_ship(self) -> bool:
        """Whether any open order could be picked, now or after its release."""
        if self.stock is None:
            return bool(self.open)
        return any(self.in_stock(order.lines) for order in self.open.values())

    def in_stock(self, lines: Iterable[tuple[str, int]]) -> bool:
        """Return whether slots hold the units that are asked for."""
        stock = self.stock
        return stock is None or all(stock[slot] >= units for slot, units in lines)

    def wait(self, time: int) -> None:
        """Let the picker wait `time` units, `>= 0`."""
        self.now += time

    def trip(self, ids: Sequence[str], stops: Sequence[str]) -> Shipment | str:
        """Send the picker for the orders `ids` along the slots `stops`.

        Args:
            ids: order ids.
            stops: plain slot names in walking order: each slot the orders need, once; none at
                all stands for the S-shape.

        Returns:
            what was shipped, or the reason of a refusal, which has cost one time unit.
        """
        load = self._load(ids, stops)
        if isinstance(load, str):
            self.refusals.append((self.now, load))
            self.wait(1)
            return load
        orders, carried = load
        if not stops:
            stops = s_shape(list(needs(orders)))
        number, steps = self.site.walks
        here, walked = steps[0], 0
        for stop in stops:
            place = number[stop]
            walked += here[place]
            here = steps[place]
        walked += here[0]
        stock, clauses = self.stock, self.site.clauses
        start, paying, fined = self._terms(orders) if clauses else (self.now, orders, 0.0)
        finish = start + walked + carried
        earned = []
        for order in paying:
            late = max(0, finish - order.due)
            value = order.value * math.exp(-late / self.site.decay) if late else order.value
            for clause in clauses:
                value = clause.worth(order.id, value, late)
            self.earned += value
            earned.append((order.id, value, late))
        for order in orders:
            del self.open[order.id]
            if stock is not None:
                for slot, units in order.lines:
                    stock[slot] -= units
        self.walked += walked
        self.fined += fined
        self.now = finish
        shipment = Shipment(start, finish, walked, tuple(earned), tuple(stops), fined)
        self.shipments.append(shipment)
        return shipment

    def _terms(self, orders: Sequence[Order]) -> tuple[int, list[Order], float]:
        """Return when a trip leaves, the orders that it earns, and its fines, by the clauses."""
        clauses, before = self.site.clauses, self.gone
        ids = frozenset([order.id for order in orders])
        slots = frozenset([slot for order in orders for slot in order.slots])
        start = leaves(closures(clauses, ids, slots), self.now)
        earning = paid(clauses, before, ids)
        paying = [order for order in self.orders if order.id in earning]
        return start, paying, fines(clauses, before, ids)

    def _load(self, ids: Sequence[str], stops: Sequence[str]) -> tuple[list[Order], int] | str:
        """Return the orders of a trip and their units together, or why it is refused."""
        now, waiting = self.now, self.open
        orders, carried = [], 0
        slots: frozenset[str] = frozenset()
        for name in ids:
            order = waiting.get(name)
            if order is None or order.release > now:
                return self._unavailable(name)
            orders.append(order)
            carried += order.units
            slots = slots | order.slots if slots else order.slots
        if len(ids) > 1 and len(set(ids)) != len(ids):
            return "an order is named twice"
        if carried > self.site.capacity:
            return f"{carried} units, a trip carries {self.site.capacity}"
        if stops and (len(stops) != len(slots) or slots != set(stops)):
            return _wrong_route(needs(orders), stops)
        stock = self.stock
        if stock is not None:
            wanted = needs(orders).items() if len(orders) > 1 else orders[0].lines
            for slot, units in wanted:
                if units > stock[slot]:
                    return f"{slot} holds {stock[slot]}, the trip needs {units}"
        return orders, carried

    def _unavailable(self, name: str) -> str:
        """Return why an order cannot be picked now."""
        order = self.open.get(name)
        if order is None and any(order.id == name for order in self.orders):
            return f"{name} is shipped"
        if order is None or not self.site.announced:
            return f"there is no order {name}"
        return f"{name} can be picked from t={order.release}"


def _wrong_route(wanted: Collection[str], stops: Sequence[str]) -> str:
    if missing := [slot for slot in wanted if slot not in stops]:
        return f"the route leaves out {missing[0]}"
    extra = [stop for stop in stops if stop not in wanted]
    return f"no order of the trip needs {extra[0]}" if extra else "a slot is visited twice"
