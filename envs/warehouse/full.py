"""Mode `full`: every day a reorder, then the day's orders; scored against an upper bound."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.days import Days, Shop
from tokengym.envs.warehouse.full_oracle import (
    can_serve,
    daily_plans,
    hindsight_replies,
    reference_value,
    upper_bound,
)
from tokengym.envs.warehouse.grammar import read_reorder
from tokengym.envs.warehouse.layout import slot_name
from tokengym.envs.warehouse.orders import Site, read_orders
from tokengym.envs.warehouse.pick import Picking, follows
from tokengym.envs.warehouse.prompt import (
    REORDER_FORM,
    Answer,
    clock_line,
    day_lines,
    full_opening,
    order_line,
)
from tokengym.envs.warehouse.shelf import reorder
from tokengym.envs.warehouse.stock import read_items


@dataclass(frozen=True)
class FullProblem:
    """Days of a shop as they are played and scored; built once per Task.

    Attributes:
        shop: the shop and all its orders.
        values: least and greatest value of an order.
        reference: what lean reorders and first come, first served achieve.
        optimum: an upper bound of what any policy achieves.
        plan: a plan made in hindsight, as replies.
    """

    shop: Shop
    values: tuple[float, float]
    reference: float
    optimum: float
    plan: tuple[str, ...]

    exact: ClassVar[bool] = False

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the problem itself."""
        return self

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Read a problem from a Task's two parts."""
        low, high = instance["book"]["values"]
        if len(answer["books"]) != int(instance["days"]):
            raise TaskError(f"{instance['days']} days need as many books of orders")
        return cls(
            shop=read_shop(instance, answer["books"]),
            values=(float(low), float(high)),
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=tuple(answer["plan"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        return full_opening(self.shop, self.values, Days(self.shop).shelves)

    @cached_property
    def turns(self) -> int:
        """Most decisions there can be: every day two more than it has orders."""
        return sum(len(book) + 2 for book in self.shop.books)

    @cached_property
    def book_texts(self) -> list[str]:
        """What is said of the orders of each day."""
        return [
            "\n".join(["Orders", *map(order_line, book)]) if book else "No orders today."
            for book in self.shop.books
        ]

    def begin(self, turn_limit: int) -> "FullSession":
        """Open the days; `turn_limit` must cover them."""
        if self.turns > turn_limit:
            raise TaskError(f"{self.turns} decisions exceed the level's {turn_limit} turns")
        return FullSession(self)


class FullSession:
    """Days under way.

    A day's picking ends when nothing more can be shipped, at `DONE`, or after one decision more
    than it has orders.

    Attributes:
        problem: what is played.
        days: the state of shelves and floor.
        turns: replies so far.
        on_plan: whether all of them were the plan's.
        malformed: replies without a command so far.
    """

    def __init__(self, problem: FullProblem) -> None:
        self.problem = problem
        self.days = Days(problem.shop)
        self.turns = 0
        self.on_plan = True
        self._picking: Picking | None = None
        self._decisions = 0
        self._refused = 0
        self.malformed = 0
        self._lost = 0

    @property
    def opening(self) -> str:
        """The first prompt."""
        return self.problem.opening

    @property
    def picking(self) -> Picking | None:
        """Today's picking, or `None` while a reorder is awaited."""
        return self._picking

    @property
    def objective(self) -> float:
        """Value less all costs of the days closed."""
        return self.days.objective

    def metrics(self) -> dict[str, float]:
        """Return what happened, for logs."""
        return {
            "refused": float(self._refused),
            "malformed_replies": float(self.malformed),
            "lost": float(self._lost),
        }

    def respond(self, text: str, complete: bool) -> Answer:
        """Play a reply."""
        self.on_plan = self.on_plan and follows(self.problem.plan, self.turns, text, complete)
        self.turns += 1
        days, picking = self.days, self._picking
        if picking is None:
            lines = read_reorder(text, complete=complete)
            in_form = lines is not None
            said = [] if in_form else [complaint(text, REORDER_FORM, complete=complete)]
            said += self._reorder(lines or [])
            said.append(self.problem.book_texts[days.day])
            picking = self._picking = Picking(days.floor)
            self._decisions = len(picking.floor.open) + 1
        else:
            malformed = picking.malformed
            outcome = picking.play(text, complete)
            in_form = picking.malformed == malformed
            said = [outcome] if outcome else []
            self._decisions -= 1
        if not in_form:
            self.malformed += 1
        if self._decisions and not picking.over:
            said.append(clock_line(picking.floor))
            return "\n".join(said), in_form, None
        self._refused += picking.refused
        self._picking = None
        lost = days.close()
        self._lost += lost
        said.append(f"Day over, {lost} units lost." if lost else "Day over.")
        if days.over:
            return "\n".join(said), in_form, StopReason.COMPLETED
        said += day_lines(days.day + 1, days.shelves)
        return "\n".join(said), in_form, None

    def _reorder(self, lines: Sequence[tuple[str, int]]) -> list[str]:
        """Place a reorder and open the day; say what was refused."""
        units, refusals = reorder(self.days.shelves, lines)
        self.days.open(units)
        if not refusals:
            return []
        self._refused += 1
        return [f"Refused: {'; '.join(refusals)}."]


def read_shop(instance: Mapping[str, Any], books: Sequence[Sequence[Mapping[str, Any]]]) -> Shop:
    """Read a shop from an instance and the orders of its days.

    Raises:
        TaskError: if an item lacks a slot, or an order cannot be picked.
    """
    site = Site.of(instance["site"])
    items = read_items(instance)
    slots = tuple(slot_name(entry["slot"]) for entry in instance["items"])
    if off := [slot for slot in slots if slot not in site.walks.number]:
        raise TaskError(f"items lie in the slots {off}, which are not on the floor")
    shop = Shop(site, items, slots, tuple(read_orders(book, site) for book in books))
    shop.check()
    return shop


def draw_books(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[dict[str, Any]]]:
    """Draw the orders of every day."""
    book = instance["book"]
    slots = [entry["slot"] for entry in instance["items"]]
    weights = np.array(book["weights"])
    days = []
    for _ in range(int(instance["days"])):
        orders = []
        for number in range(1, int(rng.integers(book["orders"][0], book["orders"][1] + 1)) + 1):
            lines = 1 + int(rng.random() < book["second_line"])
            chosen = rng.choice(len(slots), lines, replace=False, p=weights / weights.sum())
            orders.append(
                {
                    "id": f"O{number}",
                    "value": int(rng.integers(book["values"][0], book["values"][1] + 1)),
                    "due": int(rng.integers(book["due"][0], book["due"][1] + 1)),
                    "release": 0,
                    "lines": [
                        [slots[i], 1 + int(rng.random() < book["second_unit"])] for i in chosen
                    ],
                }
            )
        days.append(orders)
    return days


def solve(
    instance: Mapping[str, Any], books: Sequence[Sequence[Mapping[str, Any]]]
) -> dict[str, Any] | None:
    """Return the bound, the reference and a plan made in hindsight; `None` if there is no plan."""
    shop = read_shop(instance, books)
    if not can_serve(shop):
        return None
    plans = daily_plans(shop)
    plan = hindsight_replies(shop, plans)
    if plan is None:
        return None
    return {
        "books": [[dict(order) for order in book] for book in books],
        "optimum": upper_bound(shop, plans),
        "reference": reference_value(shop),
        "plan": plan,
    }
