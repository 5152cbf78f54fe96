"""Picking: one shift, a book of orders, one decision per trip."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tokengym.envs.core.immutable import Immutable
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.games.game import Compiled, Form, Session
from tokengym.envs.warehouse.games.picking.oracle import value_to_come
from tokengym.envs.warehouse.games.picking.orders import Order, PickingSite, read_shift
from tokengym.envs.warehouse.games.picking.routing import shortest_tour
from tokengym.envs.warehouse.games.picking.rules import PickingState, Shipment
from tokengym.envs.warehouse.games.texts import macros
from tokengym.envs.warehouse.grammar import (
    PICK_WORDS,
    Command,
    Trip,
    Wait,
    pick_nearness,
    read_pick,
)


@dataclass(frozen=True)
class Shift(Immutable):
    """A shift.

    Attributes:
        site: the site.
        orders: the book, by release.
        stock: units by slot, or `None` if slots never run out.
        plan: the best plan.
    """

    site: PickingSite
    orders: tuple[Order, ...]
    stock: Mapping[str, int] | None
    plan: tuple[Command | None, ...]

    @property
    def turns(self) -> int:
        """Replies of the best plan."""
        return len(self.plan)

    @cached_property
    def walks(self) -> Mapping[str, int]:
        """Steps to ship each order alone, by its shortest tour."""
        length = self.site.walks.length
        tours = {order.id: shortest_tour(self.site.walks, [*order.slots]) for order in self.orders}
        return {name: length(tour) for name, tour in tours.items()}

    @property
    def exact(self) -> bool:
        """Whether all orders are known from the start."""
        return self.site.announced


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Shift:
    """Read a shift from the two parts of a Task."""
    plan = [read_pick(reply).value for reply in answer["plan"]]
    return Shift(*read_shift(instance), tuple(plan))


class PickSession(Session[Shift]):
    """A shift in progress.

    Attributes:
        picking: the state of picking.
        on_plan: whether all replies were the plan's.
    """

    form = Form(
        words=PICK_WORDS, single_line=True, read=read_pick, nearness=pick_nearness, nothing=Wait(1)
    )

    def __init__(self, compiled: Compiled[Shift]) -> None:
        super().__init__(compiled)
        shift = compiled.problem
        stock = None if shift.stock is None else dict(shift.stock)
        self.picking = PickingState(shift.site, shift.orders, stock)
        self.on_plan = True
        self._last_shown = 0

    @property
    def objective(self) -> float:
        """Value earned less the cost of walking."""
        return self.picking.objective

    @property
    def within_reach(self) -> float:
        """That and the most that the replies left can add, every order being released."""
        left = 0 if self.picking.over else self.replies_left
        return self.objective + value_to_come(self.picking, left)

    @property
    def replies_left(self) -> int:
        """Replies up to the limit."""
        return self.compiled.replies - self.turns

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.replies if self.picking.can_ship() else 1

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the shift so far."""
        picking = self.picking
        late = [late for trip in picking.shipments for *_, late in trip.earned]
        fined = {"fined": picking.fined} if picking.site.clauses else {}
        return super().metrics() | {
            **fined,
            "walked": float(picking.walked),
            "unshipped": float(len(picking.open)),
            "tardiness": float(sum(late)),
            "on_time": late.count(0) / len(picking.orders),
        }

    def play(self, command: Command) -> list[str]:
        """Walk a trip, wait or end the shift."""
        plan, picking = self.compiled.problem.plan, self.picking
        on_plan = self.turns < len(plan) and command == plan[self.turns]
        self.on_plan = self.on_plan and on_plan
        now, outcome = picking.now, None
        if isinstance(command, Wait):
            picking.wait(command.time)
        elif isinstance(command, Trip):
            outcome = picking.trip(*command)
        else:
            picking.closed = True
        self.refused = len(picking.refusals)
        if outcome is None:
            return []
        if isinstance(outcome, str):
            return [f"Refused: {outcome}. It cost 1."]
        left = f"Left t={outcome.start}. " if outcome.start > now else ""
        walk = f"{left}Walked {outcome.walked}, back t={outcome.finish}"
        fined = f" Fined ${outcome.fined:.12g}." if outcome.fined else ""
        return [f"{walk}: {write_earned(outcome) or 'nothing yet'}.{fined}"]

    def state(self) -> list[str]:
        """Show the orders that are new, the time and the open orders."""
        picking, now = self.picking, self.picking.now
        known = picking.known()
        texts = self.compiled.texts
        if picking.site.restated:
            return [texts.restated_state(now, known.values(), self.compiled.problem.walks)]
        (before, between, after), separator, no_orders = _parts(self.compiled.style)
        lines = [f"{before}{now}{between}{separator.join(known) or no_orders}{after}"]
        if picking.site.announced:
            return lines
        last, self._last_shown = self._last_shown, now
        new = [order for order in known.values() if order.release > last]
        return [f"New {texts.order_line(order)}" for order in new] + lines

    def over(self) -> StopReason | None:
        """End when nothing more can be shipped, or after the last reply."""
        if self.picking.over:
            return StopReason.COMPLETED
        return StopReason.TURN_LIMIT if self.turns >= self.compiled.replies else None


@cache
def _parts(style: str) -> tuple[list[str], str, str]:
    """Return what surrounds the time and the open orders in a prompt of that style."""
    texts = macros(f"picking/prompt_{style}")
    return texts.state.split("%s"), texts.separator, texts.no_orders


def write_earned(shipment: Shipment) -> str:
    """Write what each order of a trip earned, as in `O1 $8, O2 $4.5 (6 late)`."""
    return ", ".join(
        [
            f"{name} ${value:.1f} ({late} late)" if late else f"{name} ${value:.12g}"
            for name, value, late in shipment.earned
        ]
    )
