"""What a shift lead reads: the parts that both prompts share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.days import Shop
from tokengym.envs.warehouse.inventory import Inventory, Item
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.lease import Kind, LeaseModel
from tokengym.envs.warehouse.orders import Order, Site
from tokengym.envs.warehouse.picking import PickingState, Shipment
from tokengym.envs.warehouse.supply import Supply, Terms

PICK_WORDS = "TRIP <orders>: <their slots in walking order>, or WAIT <time>, or DONE"
REORDER_WORDS = "a line REORDER <item> <units> for each item to reorder, or REORDER NONE"

QUOTE_WORDS = "QUOTE <price>, or REFUSE"


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


class PickTerms(NamedTuple):
    """What is shown of a shift at its start.

    Attributes:
        site: the site.
        orders: the orders shown.
        total: how many there will be.
        stock: units by slot; `None` if slots never run out.
        replies: most replies.
    """

    site: Site
    orders: Sequence[Order]
    total: int
    stock: dict[str, int] | None
    replies: int


class ShopTerms(NamedTuple):
    """What is shown of a shop at its start.

    Attributes:
        shop: the shop.
        values: least and greatest value of an order.
        order_counts: fewest and most orders of a day.
        inventories: inventory by item.
    """

    shop: Shop
    values: tuple[float, float]
    order_counts: tuple[int, int]
    inventories: Sequence[Inventory]


class Prompt(Protocol):
    """How a Task is worded; depends on the Task alone."""

    def pick_opening(self, terms: PickTerms) -> str:
        """Write the first Turn of a shift of picking."""
        ...

    def stock_opening(self, items: Sequence[Item], inventories: Sequence[Inventory]) -> str:
        """Write the first Turn of a stretch of keeping stock."""
        ...

    def shop_opening(self, terms: ShopTerms) -> str:
        """Write the first Turn of days of reordering and picking."""
        ...

    def supply_opening(self, terms: Terms) -> str:
        """Write the first Turn of buying one article."""
        ...

    def supply_state(self, supply: Supply) -> str:
        """Write the period, the units on hand, and the orders that have not arrived."""
        ...

    def supply_news(self, supply: Supply, arrivals: Mapping[int, int], sold: int, lost: int) -> str:
        """Write what happened in the last period."""
        ...

    def lease_opening(self, model: LeaseModel, customer: Kind) -> str:
        """Write the first Turn of leasing out storage."""
        ...

    def lease_state(
        self, model: LeaseModel, month: int, state: Sequence[int], customer: Kind
    ) -> str:
        """Write the month, the bays that are free or will be, and who asks."""
        ...

    def clock(self, state: PickingState) -> str:
        """Write the time and the open orders."""
        ...

    def morning(self, day: int, lines: Iterable[str]) -> list[str]:
        """Write the head of a day that begins with reorders, `lines` on the inventory below it."""
        ...


def figure(value: float) -> str:
    """Write a number with all its digits."""
    return f"{value:.12g}"


def order_line(order: Order) -> str:
    """Write an order: `O3 $9 due 40 from 12: 2@A0-3 1@A2-5`."""
    start = f" from {order.release}" if order.release else ""
    lines = " ".join([f"{units}@{slot}" for slot, units in order.lines])
    return f"{order.id} ${figure(order.value)} due {order.due}{start}: {lines}"


def shipped_line(shipment: Shipment) -> str:
    """Write what a trip earned, as in `Walked 14, back t=17: O1 $8, O2 $4.5 (6 late)`."""
    earned = ", ".join(
        [
            f"{name} ${value:.1f} ({late} late)" if late else f"{name} ${figure(value)}"
            for name, value, late in shipment.earned
        ]
    )
    return f"Walked {shipment.walked}, back t={shipment.finish}: {earned}."


def refused_line(reason: str) -> str:
    """Write why a trip was refused."""
    return f"Refused: {reason}. It cost 1."


def shown_orders(state: PickingState) -> list[str]:
    """Return the ids of the open orders that the lead knows of."""
    if state.site.announced:
        return list(state.open)
    return [order.id for order in state.open.values() if order.release <= state.now]


def stock_line(inventory: Inventory) -> str:
    """Write what is on hand and what is due: `S1 has 6 due 3,0`, the first tomorrow."""
    due = f" due {','.join(map(str, inventory.due))}" if inventory.due else ""
    return f"{inventory.item.sku} has {inventory.on_hand}{due}"


def sales_line(inventory: Inventory, sold: int, lost: int) -> str:
    """Write what was sold since the last review and what is left."""
    missed = f" lost {lost}" if lost else ""
    return f"Sold {sold}{missed}; {stock_line(inventory)}"


def demand_text(item: Item) -> str:
    """Write what is known about an item's demand, by day if the days differ."""
    model = item.model
    if item.kind == "poisson":
        return f"Poisson {' '.join(map(figure, np.round(model.means, 6).tolist()))}"
    if item.kind == "shares":
        shares = ", ".join(
            f"{units}: {figure(share)}" for units, share in enumerate(model.demand[0]) if share
        )
        return f"shares {shares}"
    return f"about {round(model.means[0], 2):g}"


def map_text(layout: Layout) -> str:
    """Write a floor: aisles, or a map with how to read it."""
    if isinstance(layout, AisleLayout):
        return (
            f"Floor: aisles A0-A{layout.aisles - 1}, rows 1-{layout.rows}, depot at row 0 of A0. "
            f"Walk |i-j| in an aisle, else 2 per aisle + min(i+j, {2 * (layout.rows + 1)}-i-j)."
        )
    return (
        "Floor, Ac-r is column c, line r, from 0. Walk on . and g, reach shelves x from beside; "
        f"the depot is the first g:\n{chr(10).join(layout.lines)}"
    )


def pending_text(supply: Supply) -> str:
    """Write the units ordered that have not arrived: `100 of period 3, 90 of period 4`."""
    return ", ".join(f"{units} of period {at + 1}" for at, units in supply.pending.items())
