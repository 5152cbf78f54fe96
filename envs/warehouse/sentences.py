"""The full prompt: role, rules, goal, end and form of a reply in plain sentences."""

from collections.abc import Iterable, Sequence

from tokengym.envs.warehouse.inventory import Inventory, Item
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.orders import Site
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.prompt import (
    Examples,
    PickTerms,
    ShopTerms,
    demand_text,
    figure,
    map_text,
    order_line,
    shown_orders,
    stock_line,
)

_MALFORMED = "A reply in any other form counts as {}, and lowers your score."
_S_SHAPE = (
    "Without slots the picker walks in S-shape: aisle by aisle from the lowest number, up the rows "
    "of the first aisle, down those of the next, and so on."
)
_OWN = "Reply with one line like these, with your own orders and numbers."


class FullPrompt:
    """The full prompt of one Task.

    Args:
        seed: the Task's fingerprint, for made-up replies.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def pick_opening(self, terms: PickTerms) -> str:
        """Write the first Turn of a shift of picking."""
        site, examples = terms.site, Examples(self._seed)
        if site.announced:
            orders = f"All {terms.total} orders are below."
        else:
            orders = (
                f"There will be {terms.total} orders. Those below are known; each of the others "
                "is shown when it is released."
            )
        stock = ""
        if terms.stock:
            held = ", ".join(f"{slot} {units}" for slot, units in terms.stock.items())
            stock = f"Units in the slots: {held}. Picked units are gone.\n"
        return (
            "You lead the picking in a warehouse. Ship the orders in trips. Start your reply with "
            '"TRIP" and give the names of the orders of the next trip, with commas, then a colon '
            "and the slots to visit, in walking order.\n\n"
            f"{_picking_rules(site)}\n"
            "The shift ends when all orders are shipped, when you reply DONE, or after "
            f"{terms.replies} replies. Orders not shipped by then earn nothing.\n"
            "Your goal is the highest total of what the orders earn, less the cost of walking.\n\n"
            f"{orders} Each line has the order's name, its value, when it is due, from when it can "
            "be picked if not at once, and units@slot.\n"
            + "\n".join(map(order_line, terms.orders))
            + f"\n{stock}\n{self.clock_sentence(0)}\n\n"
            + _pick_forms(examples, site)
        )

    def stock_opening(self, items: Sequence[Item], inventories: Sequence[Inventory]) -> str:
        """Write the first Turn of a stretch of keeping stock."""
        model = items[0].model
        if model.review == 1:
            pace = f"You reply {model.reviews} times, every morning"
        else:
            pace = f"You reply {model.reviews} times, on the morning of every {model.review} days"
        return (
            f"You keep a shop in stock for {model.days} days. Start your reply with "
            '"REORDER" and give an item and how many units of it to order; one line for each item '
            'you reorder. "REORDER NONE" orders nothing.\n\n'
            f"{pace}, from day 1. On a day, what is due arrives, then you may reorder, then "
            "customers buy. Demand that the units on hand do not meet is lost. Demands of "
            "different days and items are independent. An order arrives in the morning, as many "
            "days later as is given; whether it is slow you learn the next morning. Units on hand "
            "and on order may not exceed the room.\n"
            "Costs: of every unit left each evening, of every unit lost, of every order placed, "
            "and of every unit that is left or still to arrive after the last day.\n"
            "Your goal is the lowest expected cost; luck does not count.\n"
            "A line for more than the room allows is refused and orders nothing. "
            f"{_MALFORMED.format('ordering nothing')}\n\n"
            + "\n".join(map(_item_sentences, items))
            + "\n\n"
            + "\n".join(self.morning(1, map(stock_line, inventories)))
            + "\n\n"
            + _reorder_forms(Examples(self._seed))
        )

    def shop_opening(self, terms: ShopTerms) -> str:
        """Write the first Turn of days of reordering and picking."""
        shop, examples = terms.shop, Examples(self._seed)
        items = zip(shop.items, shop.slots, strict=True)
        rows = "\n".join([f"{_item_sentences(item)} It lies at {slot}." for item, slot in items])
        low, high = map(figure, terms.values)
        fewest, most = terms.order_counts
        counts = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        return (
            f"You run a warehouse for {len(shop.books)} days. Every morning, start your reply with "
            '"REORDER" and give an item and how many units of it to order, one line for each item; '
            '"REORDER NONE" orders nothing. After it you see the orders of the day and ship them '
            'in trips: start your reply with "TRIP" and give the names of the orders of the next '
            "trip, with commas, then a colon and the slots to visit, in walking order.\n\n"
            f"Each day brings {counts} orders worth ${low} to ${high} each. Only the units on hand "
            "in the morning can be picked; an order whose units are not there cannot be shipped. "
            "Every day's clock starts at 0. A day ends when nothing more can be shipped, when you "
            "reply DONE, or after as many replies as it has orders and one more (the reorder not "
            "counted).\n"
            f"{_picking_rules(shop.site)}\n"
            "Costs: of every unit left each evening, of every unit of an order that is not shipped "
            "on its day (and the order earns nothing), and of every reorder of an item. Reorders "
            "arrive in the morning, as many days later as is given. Units on hand and on order may "
            "not exceed the room; a line for more is refused and orders nothing, as does a "
            "malformed reply in the morning. After the last day, units left are worth nothing.\n"
            "Your goal is the highest total of what the orders earn, less all costs.\n\n"
            f"{rows}\n\n"
            + "\n".join(self.morning(1, map(stock_line, terms.inventories)))
            + "\n\n"
            + _reorder_forms(examples)
            + f"\nLater, for a trip, such lines: {examples.trip(shop.site, route=True)}"
        )

    def clock(self, state: PickingState) -> str:
        """Write the time and the open orders."""
        shown = ", ".join(shown_orders(state)) or "none yet"
        return (
            f"{self.clock_sentence(state.now)} Open orders: {shown}. "
            "Reply with one line that starts with TRIP, WAIT or DONE."
        )

    def clock_sentence(self, time: int) -> str:
        """Write the time."""
        return f"It is time {time}."

    def morning(self, day: int, lines: Iterable[str]) -> list[str]:
        """Write the head of a day that begins with reorders, `lines` on the inventory below it."""
        return [
            f"Morning of day {day}. On hand, then due tomorrow, the day after and so on:",
            *lines,
        ]


def _picking_rules(site: Site) -> str:
    """Write how trips are walked and what they and lateness cost."""
    several = ""
    if site.pickers > 1:
        several = f"There are {site.pickers} pickers; each reply is for the one who is free first. "
    return (
        f"{_floor(site.layout)}\n"
        f"{several}A trip starts and ends at the depot and takes one time unit per step walked and "
        f"one per unit picked. It carries at most {site.capacity} units. A step costs "
        f"${figure(site.walk_cost)}. An order earns its value when its trip is back by the time it "
        f"is due; if it is back x later, value * exp(-x/{figure(site.decay)}).\n"
        f"{_S_SHAPE}\n"
        "A trip that breaks a rule is refused and costs 1 time unit. "
        f"{_MALFORMED.format('waiting 1 time unit')}"
    )


def _floor(layout: Layout) -> str:
    if not isinstance(layout, AisleLayout):
        return map_text(layout)
    return (
        f"The floor has aisles A0 to A{layout.aisles - 1} with rows 1 to {layout.rows}; slot A1-3 "
        "is row 3 of aisle A1. The depot is at row 0 of A0. The walk from row i to row j is |i-j| "
        "steps in one aisle; to another aisle it is 2 steps for each aisle further, plus the "
        f"smaller of i+j (around the front) and {2 * (layout.rows + 1)}-i-j (around the back)."
    )


def _item_sentences(item: Item) -> str:
    """Write an item's demand, lead time, room and costs."""
    model = item.model
    if item.kind == "poisson":
        means = demand_text(item).removeprefix("Poisson ").replace(" ", ", ")
        demand = f"Poisson demand with the mean by day {means}"
    elif item.kind == "shares":
        demand = f"units asked for on a day, with their probabilities: {demand_text(item)[7:]}"
    else:
        demand = f"demand {demand_text(item)} units a day"
    days = f"{model.lead} day{'s' if model.lead > 1 else ''}"
    if model.slow:
        days += f" (with probability {figure(model.slow)} after {model.lead + 1})"
    ends = item.kind != "about"  # in a shop, what is left at the end costs nothing
    end = f", a unit after the last day {figure(model.leftover)}" if ends else ""
    return (
        f"{item.sku}: {demand}; arrives after {days}; room {model.room}; costs: a unit left "
        f"{figure(model.holding)}, a unit lost {figure(model.lost)}, an order "
        f"{figure(model.fixed)}{end}."
    )


def _pick_forms(examples: Examples, site: Site) -> str:
    lines = [examples.trip(site, route=True), examples.trip(site, route=False), examples.wait()]
    return (
        "Reply with one line: TRIP with orders and slots, TRIP with orders alone, WAIT with a time "
        "from 1 to 999, or DONE. The form, with made-up names:\n" + "\n".join(lines) + f"\n{_OWN}"
    )


def _reorder_forms(examples: Examples) -> str:
    lines = [examples.reorder() for _ in range(3)]
    return (
        "The form, with made-up items and numbers:\n"
        + "\n".join(lines)
        + "\nReply with lines like these, with your own items and numbers."
    )
