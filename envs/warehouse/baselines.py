"""Scripted shift leads. All but the oracle use only what the Turns have shown.

A rule has a part for every kind of decision; a mode without one of them leaves it unused.

| policy | picks | reorders | buys (`inventory`) | quotes (`lease`) |
|---|---|---|---|---|
| `null` | nothing | nothing | nothing | nothing |
| `random` | up to three orders, at random | up to twice the mean demand | the same | any price |
| `fcfs` | one order at a time, the reference | lean, the reference | what was usual | the lowest |
| `edd_sshape` | earliest due date, S-shape | lean | what was usual | the lowest |
| `worked` | as `edd_sshape`, after its arithmetic | lean | what was usual | the lowest |
| `edd_exact` | earliest due date, shortest tour | lean | what was usual | the lowest |
| `newsvendor` | as `edd_exact` | balances too few and too many | capped base stock | myopic |
| `replan` | best for the orders shown | optimal for the demand shown | adaptive | optimal |
| `noisy` | `edd_exact` misread and mixed | `newsvendor`, units off | off | myopic, off |
| `oracle` | the best plan, from any state | optimal; in `full` the plan | hindsight | optimal |
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse import lease, reorder_rules, supply_rules
from tokengym.envs.warehouse import picking_rules as rules
from tokengym.envs.warehouse.full import FullSession
from tokengym.envs.warehouse.grammar import (
    Command,
    Done,
    Trip,
    Wait,
    read_pick,
    read_reorder,
    write_pick,
    write_quote,
    write_reorder,
)
from tokengym.envs.warehouse.inventory import Inventory
from tokengym.envs.warehouse.lease import Kind
from tokengym.envs.warehouse.lease_session import LeaseSession
from tokengym.envs.warehouse.oracle.replies import best_reply
from tokengym.envs.warehouse.orders import needs
from tokengym.envs.warehouse.pick import PickSession
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.replanning import replan
from tokengym.envs.warehouse.stock import StockSession
from tokengym.envs.warehouse.supply import MOST_UNITS, SKU, Supply
from tokengym.envs.warehouse.supply_session import SupplySession
from tokengym.envs.warehouse.world import WarehouseWorld

Pick = Callable[[PickingState, np.random.Generator], Command]
Reorder = Callable[[Inventory, int, np.random.Generator], int]
"""From an item's inventory and the number of the review to the units to order."""

Buy = Callable[[Supply, np.random.Generator], int]
Quote = Callable[[Kind, np.random.Generator], int]
"""From a customer for whom there is room to a price, 0 for none."""

_MOST_REPLANNED = 8
"""Open orders up to which the oracle replans when disturbed: twelve would take half a second."""
_MOST_TOGETHER = 3
_LONGEST_WAIT = 9
_DUE_NOISE = 15.0
_ROUTE_NOISE = 0.5
_WAIT_NOISE = 0.5
_LONGEST_PAUSE = 3
_ORDER_NOISE = 2
_BUYING_NOISE = 0.2
_QUOTING_NOISE = 0.25


def _play(pick: Pick, reorder: Reorder, buy: Buy, quote: Quote) -> Policy:
    """Return the policy of these parts."""

    def reply(world: World, _turn: Turn, rng: np.random.Generator) -> str:
        session = WarehouseWorld.cast(world).session
        if isinstance(session, SupplySession):
            return write_reorder([(SKU, buy(session.supply, rng))])
        if isinstance(session, LeaseSession):
            fits = session.compiled.model.free(session.state) >= session.customer.bays
            return write_quote(quote(session.customer, rng) if fits else 0)
        if isinstance(session, PickSession):
            return write_pick(pick(session.picking.state, rng))
        if isinstance(session, FullSession) and session.picking is not None:
            return write_pick(pick(session.picking.state, rng))
        if isinstance(session, StockSession):
            inventories, review = session.inventories, session.turns
        else:
            inventories, review = session.days.inventories, session.days.day
        return write_reorder([(one.item.sku, reorder(one, review, rng)) for one in inventories])

    return reply


def _oracle(world: World, _turn: Turn, _rng: np.random.Generator) -> str:
    session = WarehouseWorld.cast(world).session
    if isinstance(session, SupplySession):
        return write_reorder([(SKU, session.supply.hindsight_order())])
    if isinstance(session, LeaseSession):
        return write_quote(session.best_quote())
    if isinstance(session, StockSession):
        return write_reorder(session.best_orders())
    if session.on_plan:
        return session.compiled.plan[session.turns]
    if isinstance(session, PickSession):
        state = session.picking.state
        if len(state.open) > _MOST_REPLANNED:
            return write_pick(_resume(session.compiled.plan, state))
        return best_reply(state)
    if session.picking is None:
        plan = session.compiled.plan
        mornings = [reply for reply in plan if read_reorder(reply, complete=True) is not None]
        return mornings[session.days.day]
    state, shop = session.picking.state, session.compiled.shop
    return best_reply(state, {name: shop.penalty(order) for name, order in state.open.items()})


def _resume(plan: Sequence[str], state: PickingState) -> Command:
    """Return the first trip of a plan whose orders are all open, or a wait until they can go."""
    for reply in plan:
        trip = read_pick(reply, complete=True)
        if isinstance(trip, Trip) and state.open.keys() >= set(trip.ids):
            early = max(state.open[name].release for name in trip.ids) - state.now
            return Wait(early) if early > 0 else trip
    return rules.earliest_due_exact(state)


def _pick_nothing(_state: PickingState, _rng: np.random.Generator) -> Command:
    return Done()


def _pick_at_random(state: PickingState, rng: np.random.Generator) -> Command:
    orders = rules.available(state)
    if not orders:
        return Wait(int(rng.integers(1, _LONGEST_WAIT + 1)))
    count = int(rng.integers(1, min(len(orders), _MOST_TOGETHER) + 1))
    batch = [orders[i] for i in rng.permutation(len(orders))[:count]]
    stops = list(needs(batch))
    route = tuple(stops[i] for i in rng.permutation(len(stops)))
    return Trip(tuple(order.id for order in batch), route)


def _pick_misreading(state: PickingState, rng: np.random.Generator) -> Command:
    """Misread due dates, cut batches short, mix routes, and pause before.

    The pauses are the noise that shows in a small book: three orders can be shipped in few ways,
    and without pauses one pair of rollouts in twelve did the very same at the very same time.
    """
    orders = rules.available(state)
    if not orders:
        return rules.until_release(state)
    if rng.random() < _WAIT_NOISE:
        return Wait(int(rng.integers(1, _LONGEST_PAUSE + 1)))
    due = {order.id: order.due + _DUE_NOISE * float(rng.normal()) for order in orders}
    batch = rules.fill(state, sorted(orders, key=lambda order: due[order.id]))
    trip = rules.exact_trip(state, batch[: int(rng.integers(1, len(batch) + 1))])
    if rng.random() < _ROUTE_NOISE:
        return trip._replace(stops=tuple(rng.permutation(trip.stops).tolist()))
    return trip


def _rule(rule: rules.Rule) -> Pick:
    return lambda state, _rng: rule(state)


def _reorder_nothing(_inventory: Inventory, _review: int, _rng: np.random.Generator) -> int:
    return 0


def _reorder_at_random(inventory: Inventory, review: int, rng: np.random.Generator) -> int:
    model = inventory.item.model
    today = review * model.review
    return int(rng.integers(2 * round(sum(model.means[today : today + model.review])) + 1))


def _up_to(rule: reorder_rules.Rule) -> Reorder:
    return lambda inventory, review, _rng: reorder_rules.order_up_to(rule, inventory, review)


def _reorder_off_target(inventory: Inventory, review: int, rng: np.random.Generator) -> int:
    off = int(rng.integers(-_ORDER_NOISE, _ORDER_NOISE + 1))
    units = reorder_rules.order_up_to(reorder_rules.newsvendor, inventory, review) + off
    return max(0, min(units, inventory.room))


def _buy_nothing(_supply: Supply, _rng: np.random.Generator) -> int:
    return 0


def _buy_at_random(supply: Supply, rng: np.random.Generator) -> int:
    return int(rng.integers(2 * supply_rules.usual(supply) + 1))


def _buy(rule: supply_rules.Rule) -> Buy:
    return lambda supply, _rng: rule(supply)


def _buy_off_target(supply: Supply, rng: np.random.Generator) -> int:
    off = float(rng.normal()) * _BUYING_NOISE * supply_rules.usual(supply)
    return max(0, min(supply_rules.base_stock(supply) + round(off), MOST_UNITS))


def _quote_nothing(_customer: Kind, _rng: np.random.Generator) -> int:
    return 0


def _quote_at_random(customer: Kind, rng: np.random.Generator) -> int:
    return int(rng.integers(1, customer.high + 1))


def _quote(rule: Callable[[Kind], int]) -> Quote:
    return lambda customer, _rng: rule(customer)


def _quote_off_target(customer: Kind, rng: np.random.Generator) -> int:
    return max(1, round(lease.myopic(customer) * (1.0 + _QUOTING_NOISE * float(rng.normal()))))


_LEAN = _up_to(reorder_rules.lean)
_USUAL = _buy(supply_rules.usual)
_EXACT = _rule(rules.earliest_due_exact)
_LOWEST = _quote(lease.lowest)
_MYOPIC = _quote(lease.myopic)

_EARLIEST_DUE = _play(_rule(rules.earliest_due_s_shape), _LEAN, _USUAL, _LOWEST)


def _worked(world: World, turn: Turn, rng: np.random.Generator) -> str:
    """Add up the units by due date, then name the orders that fit, as a small model can.

    A trip without slots walks the S-shape of `edd_sshape`.
    """
    session = WarehouseWorld.cast(world).session
    picking = session.picking if isinstance(session, PickSession | FullSession) else None
    ranked = [] if picking is None else rules.earliest_due(picking.state)
    if picking is None or not ranked:
        return _EARLIEST_DUE(world, turn, rng)
    batch = rules.fill(picking.state, ranked)
    steps, units = [], 0
    for order in ranked:
        if units == picking.state.site.capacity:
            break
        fits = order in batch
        steps.append(f"{order.id} due {order.due}: {units + order.units}{'' if fits else ' no'}")
        units += order.units * fits
    trip = Trip(tuple(order.id for order in batch), ())
    return f"{', '.join(steps)}\n{write_pick(trip)}"


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": _play(_pick_nothing, _reorder_nothing, _buy_nothing, _quote_nothing),
        "random": _play(_pick_at_random, _reorder_at_random, _buy_at_random, _quote_at_random),
        "fcfs": _play(_rule(rules.singles), _LEAN, _USUAL, _LOWEST),
        "edd_sshape": _EARLIEST_DUE,
        "worked": _worked,
        "edd_exact": _play(_EXACT, _LEAN, _USUAL, _LOWEST),
        "newsvendor": _play(
            _EXACT,
            _up_to(reorder_rules.newsvendor),
            _buy(supply_rules.capped_base_stock),
            _MYOPIC,
        ),
        "replan": lambda world, _turn, _rng: replan(WarehouseWorld.cast(world).session),
        "noisy": _play(_pick_misreading, _reorder_off_target, _buy_off_target, _quote_off_target),
        "oracle": _oracle,
    }
)
