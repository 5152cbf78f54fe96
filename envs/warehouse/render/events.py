"""The events of a replayed episode: trips and refusals by shift, stock by item and day."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import NamedTuple, Self

from tokengym.envs.core.replay import Step, replay
from tokengym.envs.core.rollout import Record
from tokengym.envs.core.world import World
from tokengym.envs.warehouse.compiled import (
    CompiledFull,
    CompiledPick,
    CompiledStock,
    CompiledTask,
)
from tokengym.envs.warehouse.full import FullSession
from tokengym.envs.warehouse.grammar import Trip, read_pick, read_reorder
from tokengym.envs.warehouse.inventory import Inventory, Item, reorder
from tokengym.envs.warehouse.orders import Order, Site
from tokengym.envs.warehouse.pick import PickSession
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.stock import StockSession
from tokengym.envs.warehouse.supply import SKU
from tokengym.envs.warehouse.supply_session import CompiledSupply, SupplySession
from tokengym.envs.warehouse.world import WarehouseWorld


class Tour(NamedTuple):
    """A trip that was walked.

    Attributes:
        stops: slots in walking order.
        start: time it left the depot.
        finish: time it was back.
        walked: steps.
        earned: id, value earned and lateness of each of its orders.
    """

    stops: tuple[str, ...]
    start: int
    finish: int
    walked: int
    earned: tuple[tuple[str, float, int], ...]


class Refusal(NamedTuple):
    """A trip that was refused: when, and why."""

    time: int
    reason: str


@dataclass
class Shift:
    """One stretch of picking: an episode of `pick`, a day of `full`.

    Attributes:
        site: the site.
        orders: what could be picked.
        tours: the trips, as they were decided.
        refusals: trips refused.
        misread: times of replies that were not understood.
        unshipped: ids of the orders left.
    """

    site: Site
    orders: tuple[Order, ...]
    tours: list[Tour] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    misread: list[int] = field(default_factory=list)
    unshipped: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Before the first trip, nothing is shipped."""
        self.unshipped = tuple(order.id for order in self.orders)


@dataclass(kw_only=True)
class Sales:
    """One article's days or periods; lists have one entry each, in units.

    Attributes:
        title: what it is and how it is supplied.
        on_hand: what can be sold.
        ordered: reordered that morning.
        sold: sold.
        lost: asked for but not there.
    """

    title: str
    on_hand: list[int] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)
    sold: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


@dataclass(kw_only=True)
class ItemDays(Sales):
    """One item's days.

    Attributes:
        item: the item.
        arrived: came the morning after; only in `stock`.
    """

    item: Item
    arrived: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, item: Item) -> Self:
        """Return an item before its first day."""
        model = item.model
        title = (
            f"{item.sku}: {fmean(model.means):.3g} a day, arrives after {model.lead} d, "
            f"room {model.room}"
        )
        return cls(title=title, item=item)


@dataclass
class Events:
    """The events of an episode.

    Attributes:
        shifts: stretches of picking, in order; none in `stock`.
        items: items kept, none in `pick`.
        bought: the article bought, only in `supply`.
        slots: where each item lies, only in `full`.
        days: how many days there are in all, none in `pick`.
        refused: replies refused, trips or reorders.
        misread: replies that were not understood.
    """

    shifts: list[Shift] = field(default_factory=list)
    items: list[ItemDays] = field(default_factory=list)
    bought: list[Sales] = field(default_factory=list)
    slots: tuple[str, ...] = ()
    days: int = 0
    refused: int = 0
    misread: int = 0


def replay_events(world: World, record: Record) -> Events:
    """Replay a Record and collect its events."""
    world = WarehouseWorld.cast(world)
    found = _no_events(world.compile(record.task))
    for step in replay(world, record):
        session, after = step.before.session, step.after.session
        if isinstance(session, PickSession):
            _pick(found.shifts[-1], session.picking.state, step.reply)
        elif isinstance(after, SupplySession):
            _buy(found.bought[0], after)
        elif isinstance(session, StockSession):
            _keep_stock(found, session, step.reply)
        elif isinstance(session, FullSession) and isinstance(after, FullSession):
            _run_shop(found, session, after, step)
        found.refused = int(after.metrics()["refused"])
        found.misread = after.malformed
    return found


def _no_events(compiled: CompiledTask) -> Events:
    """Return the events before the first reply."""
    if isinstance(compiled, CompiledPick):
        return Events([Shift(compiled.site, compiled.orders)])
    if isinstance(compiled, CompiledStock):
        items = [ItemDays.of(item) for item in compiled.items]
        return Events(items=items, days=len(compiled.demand[0]))
    if isinstance(compiled, CompiledSupply):
        terms = compiled.course.terms
        title = f"{SKU}: ${terms.profit:g} a unit sold, promised after {terms.promised} periods"
        return Events(bought=[Sales(title=title)], days=terms.periods)
    assert isinstance(compiled, CompiledFull)  # a lease has a picture of its own
    shop = compiled.shop
    items = [ItemDays.of(item) for item in shop.items]
    return Events(items=items, slots=shop.slots, days=len(shop.books))


def _buy(periods: Sales, after: SupplySession) -> None:
    """Add the period that a reply played."""
    supply = after.supply
    asked, sold = supply.asked[-1], supply.sold - sum(periods.sold)
    periods.on_hand.append(supply.on_hand + sold)
    periods.ordered.append(supply.ordered[-1])
    periods.sold.append(sold)
    periods.lost.append(asked - sold)


def _pick(shift: Shift, state: PickingState, reply: str) -> None:
    """Add the events of a reply; `state` is changed."""
    now = state.now
    command = read_pick(reply, complete=True)
    if command is None:
        shift.misread.append(now)
    elif isinstance(command, Trip):
        outcome = state.trip(*command)
        if isinstance(outcome, str):
            shift.refusals.append(Refusal(now, outcome))
        else:
            tour = Tour(outcome.stops, now, outcome.finish, outcome.walked, outcome.earned)
            shift.tours.append(tour)
    shift.unshipped = tuple(state.open)


def _keep_stock(found: Events, session: StockSession, reply: str) -> None:
    """Add the days of one review cycle; the session is changed."""
    compiled = session.compiled
    ordered = _ordered(session.inventories, reply)
    first = session.turns * compiled.review
    for days, inventory, units, path, late in zip(
        found.items, session.inventories, ordered, compiled.demand, compiled.late, strict=True
    ):
        for asked in path[first : first + compiled.review]:
            days.on_hand.append(inventory.on_hand)
            days.ordered.append(units)
            inventory.place(units, late=late[session.turns])
            units = 0
            days.arrived.append(inventory.due[0])
            sold = min(asked, inventory.on_hand)
            days.sold.append(sold)
            days.lost.append(asked - sold)
            inventory.end_day(inventory.on_hand - sold)


def _run_shop(
    found: Events, session: FullSession, after: FullSession, step: Step[WarehouseWorld]
) -> None:
    """Add a morning's reorder or a decision of picking, and the evening if the day is over."""
    shop = session.compiled.shop
    if session.picking is None:
        found.shifts.append(Shift(shop.site, shop.books[session.days.day]))
        ordered = _ordered(session.days.inventories, step.reply)
        for days, inventory, units in zip(
            found.items, session.days.inventories, ordered, strict=True
        ):
            days.on_hand.append(inventory.on_hand)
            days.ordered.append(units)
    else:
        _pick(found.shifts[-1], session.picking.state, step.reply)
    if after.days.day == session.days.day:
        return
    picking = after.days.picking
    for days, slot in zip(found.items, found.slots, strict=True):
        left = days.on_hand[-1] if picking.stock is None else picking.stock[slot]
        days.sold.append(days.on_hand[-1] - left)
        lines = [line for order in picking.open.values() for line in order.lines]
        days.lost.append(sum(units for wanted, units in lines if wanted == slot))


def _ordered(inventories: Sequence[Inventory], reply: str) -> list[int]:
    """Return the units a reply orders by item."""
    units, _ = reorder(inventories, read_reorder(reply, complete=True) or [])
    return units
