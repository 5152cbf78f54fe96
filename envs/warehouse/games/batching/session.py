"""Batching orders, one trip a reply; orders left at the end are walked for one by one."""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.core.form import nearness
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.games.batching.rules import Pool
from tokengym.envs.warehouse.games.game import Compiled, Form, Session
from tokengym.envs.warehouse.grammar import Done, Trip, read_pick


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Pool:
    """Read orders to batch from the two parts of a Task."""
    return Pool.of(instance, answer["plan"], -float(answer["optimum"]))


def read_batch(text: str, *, complete: bool) -> tuple[str, ...] | None:
    """Return the orders of a trip, none to end; `None` for any other reply."""
    command = read_pick(text, complete=complete)
    if isinstance(command, Trip) and not command.stops:
        return command.ids
    return () if isinstance(command, Done) else None


class BatchSession(Session[Pool]):
    """Orders being batched.

    Attributes:
        left: the orders left, by number from 0.
        batches: the trips so far.
    """

    form = Form(
        words="TRIP <orders>, or DONE",
        single_line=True,
        read=read_batch,
        nearness=lambda text: nearness(text, "TRIP O0,O0"),
        nothing=None,
    )
    end = ("The orders left, if any, are walked for one by one.",)

    def __init__(self, compiled: Compiled[Pool]) -> None:
        super().__init__(compiled)
        self.left = list(range(len(compiled.problem.orders)))
        self.batches: list[list[int]] = []
        self._closed = False

    @property
    def objective(self) -> float:
        """Minus the length of all tours, every order left on one of its own."""
        pool = self.compiled.problem
        return -pool.total([*self.batches, *([order] for order in self.left)])

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the trips so far, and of those for orders left."""
        trips = len(self.batches) + len(self.left)
        return {**super().metrics(), "walked": -self.objective, "trips": float(trips)}

    def play(self, command: tuple[str, ...] | None) -> list[str]:
        """Walk a trip, or leave all orders that are left."""
        if not command:
            self._closed = command is not None
            return []
        pool, batch = self.compiled.problem, [int(name[1:]) - 1 for name in command]
        units = int(pool.units[[order for order in batch if order in self.left]].sum())
        if closed := [order for order in batch if order not in self.left]:
            reason = f"O{closed[0] + 1} is not open"
        elif len(set(batch)) < len(batch):
            reason = "an order is named twice"
        elif units > pool.capacity:
            reason = f"{units} articles, a trip carries {pool.capacity}"
        else:
            self.batches.append(batch)
            self.left = [order for order in self.left if order not in batch]
            return [f"Walked {pool.length(batch):g}, {units} of {pool.capacity} articles."]
        self.refused += 1
        return [f"Refused: {reason}."]

    def over(self) -> StopReason | None:
        """End when no order is left, at `DONE`, or after as many replies as there are orders."""
        if self._closed or not self.left:
            return StopReason.COMPLETED
        return StopReason.TURN_LIMIT if self.turns >= self.compiled.problem.turns else None
