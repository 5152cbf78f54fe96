"""Mode `pick`: one shift, a book of orders, one decision a trip."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.floor import Floor
from tokengym.envs.warehouse.grammar import MOST_WAIT, Done, Trip, Wait, read_pick, write
from tokengym.envs.warehouse.orders import Order, Site, read_orders
from tokengym.envs.warehouse.pick_oracle import Leg, best_plan
from tokengym.envs.warehouse.prompt import (
    PICK_FORM,
    Answer,
    clock_line,
    order_line,
    pick_opening,
    refused_line,
    shipped_line,
)
from tokengym.envs.warehouse.rules import first_come_first_served


@dataclass(frozen=True)
class PickProblem:
    """A shift as it is played and scored; built once per Task.

    Attributes:
        site: the site.
        orders: the book, by id.
        stock: units by slot, or `None` if slots never run out.
        reference: value of first come, first served, one order at a time.
        optimum: value of the best plan.
        plan: the best plan, as replies.
    """

    site: Site
    orders: tuple[Order, ...]
    stock: Mapping[str, int] | None
    reference: float
    optimum: float
    plan: tuple[str, ...]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the problem itself."""
        return self

    @property
    def exact(self) -> bool:
        """Whether a policy that sees what is shown can reach the optimum."""
        return self.site.announced

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Read a problem from a Task's two parts."""
        site, orders, stock = _parts(instance)
        return cls(
            site,
            orders,
            stock,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            plan=tuple(answer["plan"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        shown = [order for order in self.orders if self.site.announced or not order.release]
        return pick_opening(self.site, shown, len(self.orders))

    @cached_property
    def news(self) -> list[tuple[int, str]]:
        """What is said on the release of orders not shown before, and when, by time."""
        if self.site.announced:
            return []
        late = sorted([o for o in self.orders if o.release], key=lambda order: order.release)
        return [(order.release, f"New {order_line(order)}") for order in late]

    def begin(self, turn_limit: int) -> "PickSession":
        """Open a shift of at most `turn_limit` decisions.

        Raises:
            TaskError: if the best plan takes more.
        """
        if len(self.plan) > turn_limit:
            raise TaskError(f"the best plan takes {len(self.plan)} turns, the level {turn_limit}")
        return PickSession(self, turn_limit)


class Picking:
    """Replies played on a floor; shared by the modes that pick.

    Attributes:
        floor: the floor.
        refused: trips refused so far.
        malformed: replies without a command so far.
        closed: whether the lead ended the shift.
    """

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.refused = 0
        self.malformed = 0
        self.closed = False

    @property
    def over(self) -> bool:
        """Whether nothing more can be shipped."""
        return self.closed or not self.floor.can_ship()

    def play(self, text: str, complete: bool) -> str:
        """Play a reply and say what came of it; nothing is said of a plain wait."""
        command = read_pick(text, complete=complete)
        if command is None:
            self.malformed += 1
            self.floor.wait(1)
            return complaint(text, PICK_FORM, complete=complete)
        if isinstance(command, Trip):
            outcome = self.floor.trip(*command)
            if not isinstance(outcome, str):
                return shipped_line(outcome)
            self.refused += 1
            return refused_line(outcome)
        if isinstance(command, Wait):
            self.floor.wait(command.time)
        else:
            self.closed = True
        return ""


class PickSession:
    """A shift under way.

    Attributes:
        problem: what is played.
        picking: the state of the floor.
        turns: replies so far.
        on_plan: whether all of them were the plan's.
    """

    def __init__(self, problem: PickProblem, turn_limit: int) -> None:
        stock = None if problem.stock is None else dict(problem.stock)
        self.problem = problem
        self.picking = Picking(Floor(problem.site, problem.orders, stock))
        self.turns = 0
        self.on_plan = True
        self._turn_limit = turn_limit
        self._told = 0

    @property
    def opening(self) -> str:
        """The first prompt."""
        return self.problem.opening

    @property
    def objective(self) -> float:
        """Value earned less the cost of walking."""
        return self.picking.floor.objective

    @property
    def malformed(self) -> int:
        """Replies without a command so far."""
        return self.picking.malformed

    def metrics(self) -> dict[str, float]:
        """Return what happened, for logs."""
        picking = self.picking
        return {
            "refused": float(picking.refused),
            "malformed_replies": float(picking.malformed),
            "walked": float(picking.floor.walked),
            "unshipped": float(len(picking.floor.open)),
        }

    def respond(self, text: str, complete: bool) -> Answer:
        """Play a reply."""
        picking = self.picking
        malformed = picking.malformed
        said = picking.play(text, complete)
        in_form = picking.malformed == malformed
        self.on_plan = self.on_plan and follows(self.problem.plan, self.turns, text, complete)
        self.turns += 1
        if picking.over:
            return said or "The shift is over.", in_form, StopReason.COMPLETED
        if self.turns >= self._turn_limit:
            return said or "The shift is over.", in_form, StopReason.TURN_LIMIT
        floor = picking.floor
        line = clock_line(floor)
        for release, new in self.problem.news[self._told :]:
            if release > floor.now:
                break
            self._told += 1
            said = f"{said}\n{new}" if said else new
        return f"{said}\n{line}" if said else line, in_form, None


def solve(instance: Mapping[str, Any]) -> dict[str, Any]:
    """Return optimum, reference and the best plan of a shift."""
    site, orders, stock = _parts(instance)
    best = best_plan(site, orders, stock=stock)
    left = sum(len(leg.ids) for leg in best.legs) < len(orders)
    return {
        "optimum": best.value,
        "reference": first_come_first_served(site, orders, stock),
        "plan": [*replies(best.legs, [0] * site.pickers), *([write(Done())] if left else [])],
    }


def follows(plan: Sequence[str], turn: int, text: str, complete: bool) -> bool:
    """Return whether a reply is the plan's at that turn."""
    return complete and turn < len(plan) and text == plan[turn]


def best_reply(floor: Floor, penalties: Mapping[str, float] | None = None) -> str:
    """Return what the best plan from here on says next, all releases being known.

    Args:
        floor: the state of picking.
        penalties: cost of leaving each order unshipped, by id; `None` for no cost.
    """
    orders = list(floor.open.values())
    costs = None if penalties is None else [penalties[order.id] for order in orders]
    plan = best_plan(floor.site, orders, stock=floor.stock, penalties=costs, free=floor.free)
    return next(iter(replies(plan.legs, floor.free)), write(Done()))


def replies(legs: Sequence[Leg], free: Sequence[int]) -> list[str]:
    """Write a plan, its legs by start, as the replies that carry it out.

    Args:
        legs: trips by start.
        free: when each picker is free at first, ascending.
    """
    said: list[str] = []
    free = list(free)
    for leg in legs:
        while free[0] < leg.start:
            wait = Wait(min(leg.start - free[0], MOST_WAIT))
            said.append(write(wait))
            free[0] += wait.time
            free.sort()
        said.append(write(Trip(leg.ids, leg.stops)))
        free[0] = leg.finish
        free.sort()
    return said


def _parts(instance: Mapping[str, Any]) -> tuple[Site, tuple[Order, ...], dict[str, int] | None]:
    site = Site.of(instance["site"])
    orders = read_orders(instance["orders"], site)
    if not orders:
        raise TaskError("a shift needs at least one order")
    stock = instance["stock"]
    return site, orders, None if stock is None else {str(k): int(v) for k, v in stock.items()}
