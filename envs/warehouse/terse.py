"""The terse prompt: the rules in few words, for tiny models trained on it."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tokengym.envs.core.seeding import generator
from tokengym.envs.warehouse.inventory import Inventory, Item
from tokengym.envs.warehouse.lease import Kind, LeaseModel
from tokengym.envs.warehouse.orders import Site
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.prompt import (
    PickTerms,
    ShopTerms,
    demand_text,
    figure,
    map_text,
    order_line,
    shown_orders,
    stock_line,
)
from tokengym.envs.warehouse.supply import SKU, Supply, Terms

_ROUTE = "orders: slots in walking order; no slots: S-shape, up the first aisle, down the next"
_REFUSED = "A refused reply costs 1, a malformed one score too."


class TersePrompt:
    """The terse prompt of one Task.

    Args:
        seed: the Task's fingerprint, for made-up replies.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed

    def pick_opening(self, terms: PickTerms) -> str:
        """Write the first Turn of a shift of picking."""
        site, examples = terms.site, Examples(self._seed)
        shown = "\n".join(map(order_line, terms.orders))
        later = "" if site.announced else f"\nMore orders come later, {terms.total} in all."
        held = terms.stock or {}
        stock = "".join([f"\nSlots hold {_held(held)}."]) if held else ""
        return (
            f"Pick the orders.\n{_site_rules(site)}\n{shown}{later}{stock}\n"
            f"Unshipped orders earn 0. {_REFUSED}\n"
            f"{terms.replies} replies like {examples.trip(site)} ({_ROUTE}), "
            f"{examples.wait()} or DONE.\nt=0"
        )

    def stock_opening(self, items: Sequence[Item], inventories: Sequence[Inventory]) -> str:
        """Write the first Turn of a stretch of keeping stock."""
        model = items[0].model
        pace = "every day" if model.review == 1 else f"every {model.review} days"
        rows = "\n".join(map(_item_row, items))
        return (
            f"Keep the shop in stock for {model.days} days, reorder {pace}. "
            "A day: what is due arrives, you reorder, customers buy, demand not met is lost.\n"
            "Per item: mean demand (by day), days until a reorder arrives, room with what is due, "
            "cost of a unit left in the evening, of a unit lost, of a reorder, of a unit left or "
            f"due after the last day.\n{rows}\n"
            "Scored on expected cost. Reply a line an item like "
            f"{Examples(self._seed).reorder()}, or REORDER NONE. "
            "Refused and malformed lines order 0, malformed replies cost score.\n"
            + "\n".join(self.morning(1, map(stock_line, inventories)))
        )

    def shop_opening(self, terms: ShopTerms) -> str:
        """Write the first Turn of days of reordering and picking."""
        shop, examples = terms.shop, Examples(self._seed)
        items = zip(shop.items, shop.slots, strict=True)
        rows = "\n".join([f"{_item_row(item)}, at {slot}" for item, slot in items])
        low, high = map(figure, terms.values)
        return (
            f"Run the warehouse for {len(shop.books)} days. Each morning what is due arrives and "
            f"you reorder, then you pick the day's {terms.order_counts[0]}-{terms.order_counts[1]} "
            f"orders, worth ${low}-${high} each, from t=0. A day ends when all that can be is "
            "shipped, at DONE, or after one reply more than orders. What is not shipped is lost, "
            "what is left at the end worth 0.\n"
            f"{_site_rules(shop.site)}\n"
            "Per item: mean demand a day, days until a reorder arrives, room with what is due, "
            f"cost of a unit left in the evening, of a unit lost, of a reorder.\n{rows}\n"
            f"{_REFUSED}\nMornings: a line an item like {examples.reorder()}, or REORDER NONE. "
            f"Then {examples.trip(shop.site)} ({_ROUTE}), {examples.wait()} or DONE.\n"
            + "\n".join(self.morning(1, map(stock_line, terms.inventories)))
        )

    def supply_opening(self, terms: Terms) -> str:
        """Write the first Turn of buying one article."""
        trust = "" if terms.reliable else ", not kept; some orders never arrive"
        about = f"{terms.about}\n" if terms.about else ""
        return (
            f"Buy {SKU} for {terms.periods} periods. A period: you order, orders arrive, "
            "customers buy, demand not met is lost. Demand changes.\n"
            f"Sold {figure(terms.profit)}, left in the evening -{figure(terms.holding)}, promised "
            f"lead {terms.promised}{trust}.\n{about}"
            f"Before: {' '.join(map(str, terms.history))}\n"
            f"Reply like {Examples(self._seed).reorder()}, or REORDER NONE. Refused and malformed "
            "lines order 0, malformed replies cost score.\n"
            + self.supply_state(Supply.at_start(terms))
        )

    def supply_state(self, supply: Supply) -> str:
        """Write the period, the units on hand, and the orders that have not arrived."""
        date = f" {supply.terms.dates[supply.period]}" if supply.terms.dates else ""
        due = " ".join(f"{units}@{at + 1}" for at, units in supply.pending.items())
        return f"Period {supply.period + 1}{date} has {supply.on_hand}{due and ' due ' + due}"

    def supply_news(self, supply: Supply, arrivals: Mapping[int, int], sold: int, lost: int) -> str:
        """Write what happened in the last period."""
        came = " ".join(f"{units}@{at + 1}" for at, units in arrivals.items())
        return f"{came and 'Got ' + came + '. '}Sold {sold} lost {lost}"

    def lease_opening(self, model: LeaseModel, customer: Kind) -> str:
        """Write the first Turn of leasing out storage."""
        rows = "\n".join(
            f"{kind.name}: {kind.bays} bays, {kind.months} months, pays {kind.low}-{kind.high}, "
            f"odds {' '.join(figure(shares[number]) for shares in model.chances)}"
            for number, kind in enumerate(model.kinds)
        )
        return (
            f"Lease out {model.bays} bays for {model.months} months. Each month one customer asks; "
            "signs if your price per bay and month is not above a limit in its range, all equally "
            f"likely. Earns price*bays*months.\n{rows}\n"
            f"Scored on expected earnings. Reply like {Examples(self._seed).quote()}, or REFUSE. "
            "Malformed replies turn away and cost score.\n"
            + self.lease_state(model, 0, model.start, customer)
        )

    def lease_state(
        self, model: LeaseModel, month: int, state: Sequence[int], customer: Kind
    ) -> str:
        """Write the month, the bays that are free or will be, and who asks."""
        back = " ".join(map(str, state))
        return f"Month {month + 1} free {model.bays - sum(state)} back {back}: {customer.name}"

    def clock(self, state: PickingState) -> str:
        """Write the time and the open orders."""
        return f"t={state.now} open {','.join(shown_orders(state)) or 'none'}"

    def morning(self, day: int, lines: Iterable[str]) -> list[str]:
        """Write the head of a day that begins with reorders, `lines` on the inventory below it."""
        return [f"Day {day}", *lines]


def _held(stock: dict[str, int]) -> str:
    return " ".join([f"{units}@{slot}" for slot, units in stock.items()])


def _site_rules(site: Site) -> str:
    several = (
        f"{site.pickers} pickers, each trip by the one free first. " if site.pickers > 1 else ""
    )
    return (
        f"{map_text(site.layout)}\n"
        f"{several}Trips start and end at the depot, last walk + units, carry {site.capacity} "
        f"units at most. A step costs {figure(site.walk_cost)}. "
        f"Late by x: value*exp(-x/{figure(site.decay)})."
    )


def _item_row(item: Item) -> str:
    model = item.model
    late = f" or {model.lead + 1} ({figure(100 * model.slow)}%)" if model.slow else ""
    end = f", end {figure(model.leftover)}" if item.kind != "about" else ""
    return (
        f"{item.sku}: demand {demand_text(item)}, lead {model.lead}{late}, room {model.room}, "
        f"left {figure(model.holding)}, lost {figure(model.lost)}, order {figure(model.fixed)}{end}"
    )


class Examples:
    """Made-up replies, different for every Task, with names that the Task does not have.

    Args:
        seed: the Task's fingerprint.
    """

    def __init__(self, seed: str) -> None:
        self._rng = generator("tokengym/Warehouse", "examples", seed)

    def trip(self, site: Site) -> str:
        """Return a trip of orders and slots that do not exist."""
        count = int(self._rng.integers(1, 4))
        orders = [f"O{n}" for n in self._rng.choice(np.arange(40, 100), count, replace=False)]
        slots: list[str] = []
        while len(slots) < count:
            slot = f"A{self._rng.integers(4, 100)}-{self._rng.integers(0, 100)}"
            if slot not in site.walks.number:
                slots.append(slot)
        return f"TRIP {','.join(orders)}: {', '.join(slots)}"

    def wait(self) -> str:
        """Return a wait."""
        return f"WAIT {self._rng.integers(1, 30)}"

    def quote(self) -> str:
        """Return a price that no customer pays."""
        return f"QUOTE {self._rng.integers(500, 1000)}"

    def reorder(self) -> str:
        """Return a reorder of an item that does not exist."""
        return f"REORDER S{self._rng.integers(20, 100)} {self._rng.integers(1, 30)}"
