"""Orders, and the site they are picked at: frozen data read from a Task."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.warehouse.games.picking.clauses import Clause, read_clauses
from tokengym.envs.warehouse.layout import Layout, Walks, layout_of, plain_layout, slot_name, walks
from tokengym.envs.warehouse.plain import scalars


@dataclass(frozen=True, slots=True)
class Order(Immutable):
    """An order of one customer.

    Attributes:
        id: `O1`, `O2` and so on.
        value: what it earns when shipped on time, `> 0`.
        due: time it should be back at the depot, `>= 0`.
        release: time from which it can be picked, `>= 0`.
        lines: slot and units, each slot once, units `>= 1`.
        units: all units together.
        slots: where they lie.
    """

    id: str
    value: float
    due: int
    release: int
    lines: tuple[tuple[str, int], ...]
    units: int
    slots: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Derive the slots once: every trip needs them."""
        object.__setattr__(self, "slots", frozenset([slot for slot, _ in self.lines]))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read an order from its plain form.

        Raises:
            TaskError: if a line has no units, a slot comes twice, or the value is not positive.
        """
        lines = tuple((slot_name(slot), int(units)) for slot, units in data["lines"])
        order = cls(**scalars(cls, data), lines=lines, units=sum(units for _, units in lines))
        if not lines or len(order.slots) != len(lines) or min(units for _, units in lines) < 1:
            raise TaskError(
                f"order {order.id} needs lines of at least 1 unit, one a slot, got {lines}"
            )
        if order.value <= 0 or order.due < 0 or order.release < 0:
            raise TaskError(
                f"order {order.id} needs a positive value and times >= 0, got value={order.value}, "
                f"due={order.due}, release={order.release}"
            )
        return order

    def plain(self) -> dict[str, Any]:
        """Return the plain form that `of` reads."""
        terms = {name: getattr(self, name) for name in ("id", "value", "due", "release")}
        return {**terms, "lines": [list(line) for line in self.lines]}


@dataclass(frozen=True)
class PickingSite(Immutable):
    """The place where orders are picked, and the costs of picking.

    Attributes:
        layout: slots and walkways.
        capacity: most units of one trip.
        decay: time over which a late order's value falls to 1/e.
        walk_cost: cost of a step.
        announced: whether orders are shown before their release.
        clauses: terms stated in words, which the plain form leaves to that of a shift.
        restated: whether each Turn states the open orders again, with their walks; the plain form
            leaves it out where it does not.
    """

    layout: Layout
    capacity: int
    decay: float
    walk_cost: float
    announced: bool = True
    clauses: tuple[Clause, ...] = ()
    restated: bool = False

    def __post_init__(self) -> None:
        """Refuse a site where nothing can be picked."""
        if self.capacity < 1 or self.decay <= 0 or self.walk_cost < 0:
            raise TaskError(f"a site needs capacity >= 1, decay > 0 and walk_cost >= 0, got {self}")
        if self.clauses and not self.announced:
            raise TaskError("clauses need orders that are announced, got announced=False")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """Read a site from its plain form.

        Raises:
            TaskError: if it is no site, or one of several pickers.
        """
        if data.get("pickers", 1) != 1:
            raise TaskError(f"a site has one picker, got {data['pickers']!r}")
        return cls(**scalars(cls, data), layout=layout_of(data["layout"]))

    def plain(self) -> dict[str, Any]:
        """Return the plain form that `of` reads."""
        names = [field.name for field in fields(self) if field.name != "clauses"]
        names = names if self.restated else [name for name in names if name != "restated"]
        terms = {name: getattr(self, name) for name in names}
        # The number of pickers is part of what names a Task.
        return {**terms, "layout": plain_layout(self.layout), "pickers": 1}

    @cached_property
    def walks(self) -> Walks:
        """Walking distances of the layout."""
        return walks(self.layout)


def read_orders(data: Sequence[Mapping[str, Any]], site: PickingSite) -> tuple[Order, ...]:
    """Read orders that can be picked at `site`.

    Raises:
        TaskError: if two share an id, the layout lacks a slot, or an order exceeds a trip.
    """
    orders = tuple(Order.of(entry) for entry in data)
    if len({order.id for order in orders}) != len(orders):
        raise TaskError(f"orders have different ids, got {[order.id for order in orders]}")
    known = site.walks.number
    for order in orders:
        if order.units > site.capacity:
            raise TaskError(
                f"order {order.id} has {order.units} units, a trip carries {site.capacity}"
            )
        if off := [slot for slot, _ in order.lines if slot not in known]:
            raise TaskError(f"order {order.id} names slots that the layout lacks: {off}")
    return orders


def needs(orders: Sequence[Order]) -> dict[str, int]:
    """Return the units needed by slot for `orders` together."""
    total = dict(orders[0].lines) if orders else {}
    for order in orders[1:]:
        for slot, units in order.lines:
            total[slot] = total.get(slot, 0) + units
    return total


def read_shift(
    instance: Mapping[str, Any],
) -> tuple[PickingSite, tuple[Order, ...], dict[str, int] | None]:
    """Read a shift from an instance: the site, the orders, and units by slot (`None`: no limit).

    Raises:
        TaskError: if there is no order, one that cannot be picked, or a slot without units.
    """
    site = PickingSite.of(instance["site"])
    orders = read_orders(instance["orders"], site)
    if not orders:
        raise TaskError("a shift needs at least one order")
    known = frozenset([order.id for order in orders])
    site = replace(site, clauses=read_clauses(instance.get("clauses", ()), known))
    if instance["stock"] is None:
        return site, orders, None
    stock = {str(slot): int(units) for slot, units in instance["stock"].items()}
    if off := sorted(needs(orders).keys() - stock.keys()):
        raise TaskError(f"orders name the slots {off}, whose units are not given")
    return site, orders, stock
