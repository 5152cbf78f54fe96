"""Picking as it happens: clocks, trips, refusals, lateness. No text, no scores."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tokengym.envs.warehouse.orders import Order, Site, needs


class Shipment(NamedTuple):
    """A trip that was walked.

    Attributes:
        finish: time it was back at the depot.
        walked: steps.
        earned: id, value earned and lateness of each of its orders.
    """

    finish: int
    walked: int
    earned: tuple[tuple[str, float, int], ...]


class Floor:
    """The state of picking a set of orders.

    Every decision is that of the picker who is free first. A refused trip costs that picker one
    time unit.

    Args:
        site: the site.
        orders: what is to be picked, all open at first.
        stock: units by slot, drawn down by trips; `None` if the slots never run out.
    """

    __slots__ = ("_free", "_named", "_walks", "earned", "open", "site", "stock", "walked")

    def __init__(
        self, site: Site, orders: Sequence[Order], stock: dict[str, int] | None = None
    ) -> None:
        self.site = site
        self.stock = stock
        self.open: dict[str, Order] = {order.id: order for order in orders}
        self.earned = 0.0
        self.walked = 0
        self._named = frozenset(self.open)
        self._free = [0] * site.pickers
        self._walks = site.walks

    @property
    def now(self) -> int:
        """Time of the next decision: when the first picker is free."""
        return self._free[0]

    @property
    def free(self) -> tuple[int, ...]:
        """When each picker is free, ascending."""
        return tuple(self._free)

    @property
    def objective(self) -> float:
        """Value earned less the cost of walking."""
        return self.earned - self.site.walk_cost * self.walked

    def can_ship(self) -> bool:
        """Whether any open order could be picked, now or after its release."""
        stock = self.stock
        if stock is None:
            return bool(self.open)
        return any(
            all(stock[slot] >= units for slot, units in order.lines) for order in self.open.values()
        )

    def wait(self, time: int) -> None:
        """Let the free picker wait `time` units, `>= 0`."""
        self._free[0] += time
        if len(self._free) > 1:
            self._free.sort()

    def trip(self, ids: Sequence[str], stops: Sequence[str]) -> Shipment | str:
        """Send the free picker for the orders `ids` along the slots `stops`.

        Args:
            ids: order ids.
            stops: plain slot names in walking order: each slot the orders need, once.

        Returns:
            what was shipped, or the reason of a refusal, which has cost one time unit.
        """
        wanted = self._refusal(ids, stops)
        if isinstance(wanted, str):
            self.wait(1)
            return wanted
        steps, number = self._walks.steps, self._walks.number
        walked = here = 0
        for stop in stops:
            there = number[stop]
            walked += steps[here][there]
            here = there
        walked += steps[here][0]
        finish = self._free[0] + walked + sum(wanted.values())
        earned = []
        for order_id in ids:
            order = self.open.pop(order_id)
            late, value = finish - order.due, order.value
            if late > 0:
                value *= math.exp(-late / self.site.decay)
            else:
                late = 0
            self.earned += value
            earned.append((order_id, value, late))
        if self.stock is not None:
            for slot, units in wanted.items():
                self.stock[slot] -= units
        self.walked += walked
        self.wait(finish - self._free[0])
        return Shipment(finish, walked, tuple(earned))

    def _refusal(self, ids: Sequence[str], stops: Sequence[str]) -> str | Mapping[str, int]:
        """Return why the trip is refused, or the units it needs by slot."""
        orders, now = [], self._free[0]
        for order_id in ids:
            order = self.open.get(order_id)
            if order is None:
                shipped = order_id in self._named
                return f"{order_id} is shipped" if shipped else f"there is no order {order_id}"
            if order.release > now:
                if not self.site.announced:
                    return f"there is no order {order_id}"
                return f"{order_id} can be picked from t={order.release}"
            orders.append(order)
        if len(ids) > 1 and len(set(ids)) != len(ids):
            return "an order is named twice"
        wanted = needs(orders)
        carried = sum([order.units for order in orders])
        if carried > self.site.capacity:
            return f"{carried} units, a trip carries {self.site.capacity}"
        if len(stops) != len(wanted) or wanted.keys() != set(stops):
            return _wrong_route(wanted, stops)
        if self.stock is not None:
            for slot, units in wanted.items():
                if units > self.stock[slot]:
                    return f"{slot} holds {self.stock[slot]}, the trip needs {units}"
        return wanted


def _wrong_route(wanted: Mapping[str, int], stops: Sequence[str]) -> str:
    missing = [slot for slot in wanted if slot not in stops]
    if missing:
        return f"the route leaves out {missing[0]}"
    extra = [stop for stop in stops if stop not in wanted]
    return f"no order of the trip needs {extra[0]}" if extra else "a slot is visited twice"
