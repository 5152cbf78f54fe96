"""The full prompt: role, rules, goal, end and form of a reply in plain sentences."""

from collections.abc import Iterable, Mapping, Sequence

from tokengym.envs.warehouse.grammar import MOST_WAIT
from tokengym.envs.warehouse.inventory import Inventory, Item
from tokengym.envs.warehouse.layout import AisleLayout, Layout
from tokengym.envs.warehouse.lease import MOST_PRICE, Kind, LeaseModel
from tokengym.envs.warehouse.orders import Site
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.prompt import (
    PickTerms,
    ShopTerms,
    demand_text,
    figure,
    map_text,
    order_line,
    pending_text,
    shown_orders,
    stock_line,
)
from tokengym.envs.warehouse.supply import MOST_UNITS, SKU, Supply, Terms

_MALFORMED = "A reply in any other form counts as {}, and lowers your score."
_S_SHAPE = (
    "Without slots the picker walks in S-shape: aisle by aisle from the lowest number, up the rows "
    "of the first aisle, down those of the next, and so on."
)
# Described, not shown: a model that learns from rewards alone copies an answer it is shown.
_TRIP = "TRIP <orders, with commas>: <slots in walking order, with commas>"
_REORDERS = "Reply with one line for each item you reorder:\nREORDER <item> <units>"


class FullPrompt:
    """The full prompt."""

    def pick_opening(self, terms: PickTerms) -> str:
        """Write the first Turn of a shift of picking."""
        site = terms.site
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
            + "Reply with one line: DONE, or in one of these forms:\n"
            + f"{_TRIP}\nTRIP <orders, with commas>\nWAIT <time from 1 to {MOST_WAIT}>"
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
            + _REORDERS
        )

    def shop_opening(self, terms: ShopTerms) -> str:
        """Write the first Turn of days of reordering and picking."""
        shop = terms.shop
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
            + f"{_REORDERS}\nLater, for a trip, reply with one line:\n{_TRIP}"
        )

    def supply_opening(self, terms: Terms) -> str:
        """Write the first Turn of buying one article."""
        if terms.promised:
            count = f"{terms.promised} period{'s' if terms.promised > 1 else ''}"
            promise = f"that an order arrives {count} after the one it was placed in"
        else:
            promise = "that an order arrives in the period it was placed in"
        trust = (
            "and keeps the promise."
            if terms.reliable
            else "but an order may come earlier or later, and some never come; nobody tells you."
        )
        about = f"The item is: {terms.about}\n" if terms.about else ""
        history = ", ".join(map(str, terms.history))
        return (
            f"You buy an item, {SKU}, for a shop and sell it for {terms.periods} periods. Start "
            'your reply with "REORDER" and give the item and how many units of it to order, up to '
            f'{MOST_UNITS}. "REORDER NONE" orders nothing.\n\n'
            f"You reply {terms.periods} times, once a period. In a period you order first, then "
            "orders arrive, then customers ask for units. Demand that the units on hand do not "
            f"meet is lost. A unit sold earns ${figure(terms.profit)}; a unit left at the end of a "
            f"period costs ${figure(terms.holding)}, every period. An order costs nothing itself. "
            "Units left or not arrived after the last period are worth nothing.\n"
            f"The supplier promises {promise}, {trust}\n"
            "Demand is random, and what is usual can change: rise, fall, jump or swing.\n"
            "Your goal is the highest total of what sold units earn, less the costs.\n"
            f"{_MALFORMED.format('ordering nothing')}\n\n"
            f"{about}Units asked for in the periods before, the last one most recent: {history}.\n"
            f"{self.supply_state(Supply.at_start(terms))}\n\n{_REORDERS}"
        )

    def supply_state(self, supply: Supply) -> str:
        """Write the period, the units on hand, and the orders that have not arrived."""
        terms = supply.terms
        date = f" ({terms.dates[supply.period]})" if terms.dates else ""
        return (
            f"Period {supply.period + 1} of {terms.periods}{date}. On hand: {supply.on_hand}. "
            f"Ordered and not arrived: {pending_text(supply) or 'nothing'}."
        )

    def supply_news(self, supply: Supply, arrivals: Mapping[int, int], sold: int, lost: int) -> str:
        """Write what happened in the last period."""
        came = ", ".join(f"{units} of period {at + 1}" for at, units in arrivals.items())
        return (
            f"Period {supply.period}: arrived {came or 'nothing'}; asked for {sold + lost}, sold "
            f"{sold}, lost {lost}, left {supply.on_hand}."
        )

    def lease_opening(self, model: LeaseModel, customer: Kind) -> str:
        """Write the first Turn of leasing out storage."""
        rows = "\n".join(
            f"{kind.name}: {_bays(kind.bays)} for {_months(kind.months)}; would pay ${kind.low} to "
            f"${kind.high}; asks with the probability by month "
            f"{', '.join(figure(shares[number]) for shares in model.chances)}."
            for number, kind in enumerate(model.kinds)
        )
        return (
            f"You lease out {_bays(model.bays)} of a warehouse for {model.months} months. Start "
            'your reply with "QUOTE" and give your price in $ for one bay and month, 1 to '
            f'{MOST_PRICE}. "REFUSE" turns the customer away.\n\n'
            f"You reply {model.months} times, once a month: every month one customer asks for bays "
            "for some months. The customer signs if your price is not above the most that this "
            "customer would pay, which you do not know: any whole number of $ in the range of the "
            "kind, all equally likely. Customers are independent of each other and of your "
            "prices.\n"
            "A contract earns price * bays * months at once, months after the last one included. "
            "Its bays are taken from this month on, for as many months, and are free after that. "
            "You cannot bargain, nor lease more bays than are free: a quote for more is refused.\n"
            "Your goal is the highest expected earnings; luck does not count.\n"
            f"{_MALFORMED.format('turning the customer away')}\n\n"
            f"Kinds of customers:\n{rows}\n\n"
            f"{self.lease_state(model, 0, model.start, customer)}\n\n"
            "Reply with one line: REFUSE, or in this form:\n"
            f"QUOTE <whole number from 1 to {MOST_PRICE}>"
        )

    def lease_state(
        self, model: LeaseModel, month: int, state: Sequence[int], customer: Kind
    ) -> str:
        """Write the month, the bays that are free or will be, and who asks."""
        back = [
            f"{bays} more from month {month + 1 + after}"
            for after, bays in enumerate(state, start=1)
            if bays
        ]
        return (
            f"Month {month + 1} of {model.months}. Free bays: "
            f"{', '.join([str(model.bays - sum(state)), *back])}.\n"
            f"A customer of kind {customer.name} asks for {_bays(customer.bays)} for "
            f"{_months(customer.months)}."
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


def _bays(count: int) -> str:
    return f"{count} bay{'s' if count > 1 else ''}"


def _months(count: int) -> str:
    return f"{count} month{'s' if count > 1 else ''}"


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
