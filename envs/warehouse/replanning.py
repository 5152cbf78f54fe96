"""The best honest rule: replan at every decision from what has been shown, nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from tokengym.envs.warehouse.compiled import CompiledFull, Solution
from tokengym.envs.warehouse.full import FullSession
from tokengym.envs.warehouse.grammar import Command, Done, write_pick, write_quote, write_reorder
from tokengym.envs.warehouse.inventory import Inventory
from tokengym.envs.warehouse.lease_session import LeaseSession
from tokengym.envs.warehouse.oracle.picking import best_plan
from tokengym.envs.warehouse.oracle.replies import replies
from tokengym.envs.warehouse.oracle.stock import solve
from tokengym.envs.warehouse.orders import Order
from tokengym.envs.warehouse.pick import PickSession
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.picking_rules import until_release
from tokengym.envs.warehouse.stock import StockSession
from tokengym.envs.warehouse.supply import SKU
from tokengym.envs.warehouse.supply_rules import adaptive
from tokengym.envs.warehouse.supply_session import SupplySession


def replan(
    session: PickSession | StockSession | SupplySession | LeaseSession | FullSession,
) -> str:
    """Return the first reply of the best plan for what is known.

    Orders not yet released are left out where they are not announced. In `full`, reorders are the
    optimal ones of each item on its own, for Poisson demand whose loss costs the orders' value too.
    Where demand changes in ways unknown, no plan is best: the rule that adapts is followed.
    """
    if isinstance(session, StockSession):
        return write_reorder(session.best_orders())
    if isinstance(session, SupplySession):
        return write_reorder([(SKU, adaptive(session.supply))])
    if isinstance(session, LeaseSession):
        return write_quote(session.best_quote())
    if isinstance(session, PickSession):
        return _trip(session.picking.state, {})
    if session.picking is not None:
        state, shop = session.picking.state, session.compiled.shop
        return _trip(state, {name: shop.penalty(order) for name, order in state.open.items()})
    return write_reorder(_reorders(session.compiled, session.days.inventories, session.days.day))


def _trip(state: PickingState, penalties: dict[str, float]) -> str:
    """Return the first reply of the best plan for the orders that are shown."""
    orders: Sequence[Order] = [
        order for order in state.open.values() if state.site.announced or order.release <= state.now
    ]
    costs = [penalties.get(order.id, 0.0) for order in orders]
    plan = best_plan(state.site, orders, stock=state.stock, penalties=costs, free=state.free)
    first = next(iter(replies(plan.legs, state.free)), None)
    if first is not None:
        return first
    command: Command = Done() if state.site.announced else until_release(state)
    return write_pick(command)


def _reorders(
    compiled: CompiledFull, inventories: Sequence[Inventory], day: int
) -> list[tuple[str, int]]:
    units = sum(inventory.item.model.means[day] for inventory in inventories)
    worth = sum(compiled.values) / 2 * sum(compiled.order_counts) / 2 / units
    placed = []
    for inventory in inventories:
        model = inventory.item.model
        dear = replace(model, lost=model.lost + worth)
        placed.append((inventory.item.sku, Solution(dear, solve(dear)).best_order(day, inventory)))
    return placed
