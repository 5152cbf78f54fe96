"""The texts a shift lead reads: the rules once, then only what is new."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.days import Shop
from tokengym.envs.warehouse.inventory import Inventory, Item
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.orders import Order, Site
from tokengym.envs.warehouse.picking import PickingState, Shipment

PICK_FORM = "TRIP O1,O2: A0-3, A2-5"
REORDER_FORM = "REORDER S1 12"
PICK_WORDS = "TRIP <orders>: <their slots in walking order>, or WAIT <time>, or DONE"
REORDER_WORDS = "a line REORDER <item> <units> for each item to reorder, or REORDER NONE"
_ROUTE = "orders: slots in walking order; no slots: S-shape"


class Answer(NamedTuple):
    """The answer to a reply.

    Attributes:
        text: what is new.
        nearness: how near a malformed reply is to the form, in [0, 1]; `None` if it is well-formed.
        reason: why the episode ended, if it did.
    """

    text: str
    nearness: float | None
    reason: StopReason | None = None


_ITEM_TERMS = (
    "Per item: mean demand a day, days until a reorder arrives, room with what is due, cost of a "
    "unit left in the evening, of a unit lost, of a reorder."
)


def site_rules(site: Site) -> str:
    """Write how trips are walked and what they and lateness cost."""
    several = (
        f"{site.pickers} pickers, each trip by the one free first. " if site.pickers > 1 else ""
    )
    return (
        f"{_layout(site.layout)}\n"
        f"{several}Trips start and end at the depot, last walk + units, carry {site.capacity} "
        f"units at most. A step costs {site.walk_cost:g}. Late by x: value*exp(-x/{site.decay:g})."
    )


def _layout(layout: Layout) -> str:
    if isinstance(layout, AisleLayout):
        return (
            f"Floor: aisles A0-A{layout.aisles - 1}, rows 1-{layout.rows}, depot at row 0 of A0. "
            f"Walk |i-j| in an aisle, else 2 per aisle + min(i+j, {2 * (layout.rows + 1)}-i-j)."
        )
    return (
        "Floor, Ac-r is column c, line r, from 0. Walk on . and g, reach shelves x from beside; "
        f"the depot is the first g:\n{chr(10).join(layout.lines)}"
    )


def pick_opening(site: Site, orders: Iterable[Order], total: int) -> str:
    """Write the first prompt of a shift of picking.

    Args:
        site: the site.
        orders: the orders shown from the start.
        total: how many there will be.
    """
    shown = "\n".join(map(order_line, orders))
    later = "" if site.announced else f"\nMore orders come later, {total} in all."
    return (
        f"Pick the orders.\n{site_rules(site)}\n{shown}{later}\n"
        f"Reply {PICK_FORM} ({_ROUTE}), WAIT 5 or DONE.\nt=0"
    )


def order_line(order: Order) -> str:
    """Write an order: `O3 9 due 40 from 12: 2@A0-3 1@A2-5`."""
    start = f" from {order.release}" if order.release else ""
    lines = " ".join([f"{units}@{slot}" for slot, units in order.lines])
    return f"{order.id} ${order.value:g} due {order.due}{start}: {lines}"


def shipped_line(shipment: Shipment) -> str:
    """Write what a trip earned, as in `Walked 14, back t=17: O1 $8, O2 $4.5 (6 late)`."""
    earned = ", ".join(
        [
            f"{name} ${value:.1f} ({late} late)" if late else f"{name} ${value:g}"
            for name, value, late in shipment.earned
        ]
    )
    return f"Walked {shipment.walked}, back t={shipment.finish}: {earned}."


def refused_line(reason: str) -> str:
    """Write why a trip was refused."""
    return f"Refused: {reason}. It cost 1."


def clock_line(state: PickingState) -> str:
    """Write the time and the open orders."""
    now = state.now
    if state.site.announced:
        return f"t={now} open {','.join(state.open)}"
    known = [order.id for order in state.open.values() if order.release <= now]
    return f"t={now} open {','.join(known) or 'none'}"


def stock_opening(
    items: Sequence[Item], days: int, review: int, inventories: Sequence[Inventory]
) -> str:
    """Write the first prompt of a stretch of keeping stock."""
    pace = "every day" if review == 1 else f"every {review} days"
    rows = "\n".join([item_row(item) for item in items])
    now = "\n".join(day_lines(1, inventories))
    return (
        f"Keep the shop in stock for {days} days, reorder {pace}. "
        "A day: what is due arrives, you reorder, customers buy, demand not met is lost.\n"
        f"{_ITEM_TERMS}\n{rows}\n"
        f"Scored on expected cost. Reply a line an item like {REORDER_FORM}, or REORDER NONE.\n"
        f"{now}"
    )


def item_row(item: Item) -> str:
    """Write an item's demand, lead time, room and costs, as `_ITEM_TERMS` explains them."""
    model = item.model
    kind = "Poisson " if item.poisson else ""
    return (
        f"{item.sku}: demand {kind}{model.mean:.3g}, lead {model.lead}, room {model.room}, "
        f"left {model.holding:g}, lost {model.lost:g}, order {model.fixed:g}"
    )


def stock_line(inventory: Inventory) -> str:
    """Write what is on hand and what is due: `S1 has 6 due 3,0`, the first tomorrow."""
    due = f" due {','.join(map(str, inventory.due))}" if inventory.due else ""
    return f"{inventory.item.sku} has {inventory.on_hand}{due}"


def sales_line(inventory: Inventory, sold: int, lost: int) -> str:
    """Write what was sold since the last review and what is left."""
    missed = f" lost {lost}" if lost else ""
    return f"Sold {sold}{missed}; {stock_line(inventory)}"


def full_opening(shop: Shop, values: tuple[float, float], inventories: Sequence[Inventory]) -> str:
    """Write the first prompt of days of reordering and picking."""
    items = zip(shop.items, shop.slots, strict=True)
    rows = "\n".join([f"{item_row(item)}, at {slot}" for item, slot in items])
    now = "\n".join(day_lines(1, inventories))
    return (
        f"Run the warehouse for {len(shop.books)} days. Each morning what is due arrives and you "
        f"reorder, then you pick the day's orders, worth ${values[0]:g}-${values[1]:g} each. "
        "An order not shipped is lost.\n"
        f"{site_rules(shop.site)}\n{_ITEM_TERMS}\n{rows}\n"
        f"Mornings: a line an item like {REORDER_FORM}, or REORDER NONE. Then {PICK_FORM} "
        f"({_ROUTE}), WAIT 5 or DONE.\n{now}"
    )


def day_lines(day: int, inventories: Iterable[Inventory]) -> list[str]:
    """Write the head of a day and the inventory of every item."""
    return [f"Day {day}", *map(stock_line, inventories)]
