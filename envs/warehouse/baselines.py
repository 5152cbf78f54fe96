"""Scripted shift leads. All but the oracle use only what the Turns have shown.

A rule has two halves, one to pick and one to reorder; a mode without one of them leaves it unused.

| policy | picks | reorders |
|---|---|---|
| `null` | nothing | nothing |
| `random` | up to three open orders, walked at random | up to twice the mean demand of a review |
| `fcfs` | one order at a time, the reference | lean, the reference |
| `edd_sshape` | earliest due date, S-shape | lean |
| `edd_exact` | earliest due date, shortest tour | lean |
| `newsvendor` | as `edd_exact` | up to the level that balances too few and too many |
| `replan` | the best plan for the orders shown | the optimal order for the demand shown |
| `noisy` | `edd_exact` misread, cut short, routes mixed, after a wait | `newsvendor`, units off |
| `oracle` | the best plan; disturbed, one from there | the optimal order; in `full` the plan |
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tokengym.envs.core.rollout import Policy
from tokengym.envs.core.turn import Turn
from tokengym.envs.core.world import World
from tokengym.envs.warehouse import picking_rules as rules
from tokengym.envs.warehouse import reorder_rules
from tokengym.envs.warehouse.full import FullSession
from tokengym.envs.warehouse.grammar import (
    Command,
    Done,
    Trip,
    Wait,
    read_pick,
    read_reorder,
    write_pick,
    write_reorder,
)
from tokengym.envs.warehouse.inventory import Inventory
from tokengym.envs.warehouse.oracle.replies import best_reply
from tokengym.envs.warehouse.orders import needs
from tokengym.envs.warehouse.pick import PickSession
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.replanning import replan
from tokengym.envs.warehouse.stock import StockSession
from tokengym.envs.warehouse.world import WarehouseWorld

Pick = Callable[[PickingState, np.random.Generator], Command]
Reorder = Callable[[Inventory, int, np.random.Generator], int]
"""From an item's inventory and the number of the review to the units to order."""

_MOST_REPLANNED = 8
"""Open orders up to which the oracle plans anew when disturbed: twelve would take half a second."""
_MOST_TOGETHER = 3
_LONGEST_WAIT = 9
_DUE_NOISE = 15.0
_ROUTE_NOISE = 0.5
_WAIT_NOISE = 0.5
_LONGEST_PAUSE = 3
_ORDER_NOISE = 2


def _play(pick: Pick, reorder: Reorder) -> Policy:
    """Return the policy of two halves."""

    def reply(world: World, _turn: Turn, rng: np.random.Generator) -> str:
        session = WarehouseWorld.cast(world).session
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


BASELINES: Mapping[str, Policy] = MappingProxyType(
    {
        "null": _play(_pick_nothing, _reorder_nothing),
        "random": _play(_pick_at_random, _reorder_at_random),
        "fcfs": _play(_rule(rules.singles), _up_to(reorder_rules.lean)),
        "edd_sshape": _play(_rule(rules.earliest_due_s_shape), _up_to(reorder_rules.lean)),
        "edd_exact": _play(_rule(rules.earliest_due_exact), _up_to(reorder_rules.lean)),
        "newsvendor": _play(_rule(rules.earliest_due_exact), _up_to(reorder_rules.newsvendor)),
        "replan": lambda world, _turn, _rng: replan(WarehouseWorld.cast(world).session),
        "noisy": _play(_pick_misreading, _reorder_off_target),
        "oracle": _oracle,
    }
)
