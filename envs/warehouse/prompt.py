"""What the shift lead reads. Rules once, then only what is new."""

from collections.abc import Iterable

from tokengym.envs.warehouse.floor import Floor, Shipment
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.orders import Order, Site

PICK_FORM = "TRIP O1,O2: A0-3, A2-5"
REORDER_FORM = "REORDER S1 12"


def site_rules(site: Site) -> str:
    """Say how the floor is walked and what trips and lateness cost."""
    several = (
        f"{site.pickers} pickers, each trip by the one free first. " if site.pickers > 1 else ""
    )
    return (
        f"{_floor(site.layout)}\n"
        f"{several}Trips start and end at the depot, last walk + units, carry {site.capacity} "
        f"units at most. A step costs {site.walk_cost:g}. Late by x: value*exp(-x/{site.decay:g})."
    )


def _floor(layout: Layout) -> str:
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
        f"Reply {PICK_FORM} (orders: slots in walking order), WAIT 5 or DONE.\nt=0"
    )


def order_line(order: Order) -> str:
    """Write an order: `O3 9 due 40 from 12: 2@A0-3 1@A2-5`."""
    start = f" from {order.release}" if order.release else ""
    lines = " ".join([f"{units}@{slot}" for slot, units in order.lines])
    return f"{order.id} ${order.value:g} due {order.due}{start}: {lines}"


def shipped_line(shipment: Shipment) -> str:
    """Say what a trip earned, as in `Walked 14, back t=17: O1 $8, O2 $4.5 (6 late)`."""
    earned = ", ".join(
        [
            f"{name} ${value:.1f} ({late} late)" if late else f"{name} ${value:g}"
            for name, value, late in shipment.earned
        ]
    )
    return f"Walked {shipment.walked}, back t={shipment.finish}: {earned}."


def refused_line(reason: str) -> str:
    """Say why a trip was refused."""
    return f"Refused: {reason}. It cost 1."


def clock_line(floor: Floor) -> str:
    """Say what time it is and which orders are open."""
    now, announced = floor.now, floor.site.announced
    known = [name for name, order in floor.open.items() if announced or order.release <= now]
    return f"t={now} open {','.join(known) or 'none'}"
