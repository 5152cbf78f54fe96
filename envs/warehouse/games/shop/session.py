"""Running a shop: every day a reorder, then the day's orders; scored against an upper bound."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.games.game import Compiled, Session
from tokengym.envs.warehouse.games.picking.rules import PickingState
from tokengym.envs.warehouse.games.picking.session import FORM, carry_out, follows, time_and_orders
from tokengym.envs.warehouse.games.shop.rules import Days, Shop, read_shop
from tokengym.envs.warehouse.games.stock.rules import reorder
from tokengym.envs.warehouse.games.stock.session import reorder_form
from tokengym.envs.warehouse.grammar import read_pick, read_reorder


@dataclass(frozen=True)
class Run(Immutable):
    """A run of days.

    Attributes:
        shop: the shop and all its orders.
        values: least and greatest value of an order.
        order_counts: fewest and most orders of a day.
        plan: a plan made in hindsight, as commands: reorders and what picks.
    """

    shop: Shop
    values: tuple[float, ...]
    order_counts: tuple[int, ...]
    plan: tuple[Any, ...]

    exact = False

    @property
    def turns(self) -> int:
        """Most possible decisions: every day, two more than it has orders."""
        return sum(len(book) + 2 for book in self.shop.books)


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Run:
    """Read a run of days from the two parts of a Task.

    Raises:
        TaskError: if there is not a book of orders a day.
    """
    book = instance["book"]
    if len(answer["books"]) != int(instance["days"]):
        raise TaskError(f"{instance['days']} days need as many books of orders")
    plan = [(read_reorder(reply, complete=True), reply) for reply in answer["plan"]]
    return Run(
        read_shop(instance, answer["books"]),
        tuple(map(float, book["values"])),
        tuple(map(int, book["orders"])),
        tuple(read_pick(reply, complete=True) if lines is None else lines for lines, reply in plan),
    )


class ShopSession(Session[Run]):
    """Days under way.

    A day's picking ends when nothing more can be shipped, at `DONE`, or after one decision more
    than it has orders.

    Attributes:
        days: the state of inventories and picking.
        picking: today's picking, or `None` while a reorder is awaited.
        shifts: the picking of every day so far.
        on_plan: whether all replies were the plan's.
    """

    def __init__(self, compiled: Compiled[Run]) -> None:
        super().__init__(compiled)
        self.days = Days(compiled.problem.shop)
        self.form = reorder_form(len(self.days.inventories))
        self.picking: PickingState | None = None
        self.shifts: list[PickingState] = []
        self.on_plan = True
        self._decisions = 0

    @property
    def objective(self) -> float:
        """Value less all costs of the days closed."""
        return self.days.objective

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones: it ships nothing."""
        days, count = Days(self.compiled.problem.shop), 0
        while not days.over:
            days.open([0] * len(days.inventories))
            count += 1
            if days.picking.can_ship():
                count += len(days.picking.open) + 1
            days.close()
        return count

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the days so far."""
        asked = sum(order.units for book in self.compiled.problem.shop.books for order in book)
        lost = sum(day.lost for inventory in self.days.inventories for day in inventory.days)
        return {
            **super().metrics(),
            "lost": float(lost),
            "fill_rate": 1.0 - lost / asked if asked else 1.0,
        }

    def play(self, command: Any) -> list[str]:
        """Reorder and open the day, or carry out what picks; close the day if it is over."""
        self.on_plan = self.on_plan and follows(self.compiled.problem.plan, self.turns, command)
        days = self.days
        if self.picking is None:
            units, refusals = reorder(days.inventories, command)
            lines = [f"Refused: {'; '.join(refusals)}."] if refusals else []
            self.refused += bool(refusals)
            lines.append(self.compiled.texts.book(self.compiled.problem.shop.books[days.day]))
            days.open(units)
            self.picking, self.form = days.picking, FORM
            self.shifts.append(self.picking)
            self._decisions = len(self.picking.open) + 1
        else:
            before = len(self.picking.refusals)
            lines = carry_out(self.picking, command)
            self.refused += len(self.picking.refusals) - before
            self._decisions -= 1
        if self._decisions and not self.picking.over:
            return lines
        self.picking, self.form = None, reorder_form(len(days.inventories))
        lost = days.close()
        return [*lines, f"Day over, {lost} units lost." if lost else "Day over."]

    def state(self) -> list[str]:
        """Show the time and the open orders, or a morning's inventories."""
        texts, days, picking = self.compiled.texts, self.days, self.picking
        if picking is not None:
            return [time_and_orders(picking.now, picking.known(), self.compiled.style)]
        return [texts.morning(days.day + 1, days.inventories)]

    def over(self) -> StopReason | None:
        """End after the last day."""
        return StopReason.COMPLETED if self.days.over else None
