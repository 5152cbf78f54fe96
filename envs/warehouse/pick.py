"""Mode `pick`: one shift, a book of orders, one decision per trip."""

from collections.abc import Sequence

from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.compiled import CompiledPick
from tokengym.envs.warehouse.grammar import Command, Trip, Wait, pick_nearness, read_pick
from tokengym.envs.warehouse.picking import PickingState
from tokengym.envs.warehouse.prompt import (
    PICK_WORDS,
    Answer,
    refused_line,
    shipped_line,
)


class Picking:
    """Applies replies to a `PickingState`; shared by the modes that pick.

    Attributes:
        state: the state of picking.
        refused: trips refused so far.
        malformed: replies without a command so far.
        closed: whether the lead ended the shift.
    """

    def __init__(self, state: PickingState) -> None:
        self.state = state
        self.refused = 0
        self.malformed = 0
        self.closed = False

    @property
    def over(self) -> bool:
        """Whether nothing more can be shipped."""
        return self.closed or not self.state.can_ship()

    def play(self, text: str, complete: bool) -> tuple[str, float | None]:
        """Apply a reply.

        Returns:
            the feedback on it, empty for a wait; and its nearness to the form if it is malformed.
        """
        command = read_pick(text, complete=complete)
        if command is None:
            self.malformed += 1
            self.state.wait(1)
            return complaint(text, PICK_WORDS, complete=complete), pick_nearness(text)
        return self._carry_out(command), None

    def _carry_out(self, command: Command) -> str:
        if isinstance(command, Trip):
            outcome = self.state.trip(*command)
            if not isinstance(outcome, str):
                return shipped_line(outcome)
            self.refused += 1
            return refused_line(outcome)
        if isinstance(command, Wait):
            self.state.wait(command.time)
        else:
            self.closed = True
        return ""


class PickSession:
    """A shift in progress.

    Args:
        compiled: the shift.

    Attributes:
        compiled: the shift.
        picking: the state of picking.
        turns: replies so far.
        on_plan: whether all of them were the plan's.
    """

    def __init__(self, compiled: CompiledPick) -> None:
        stock = None if compiled.stock is None else dict(compiled.stock)
        self.compiled = compiled
        self.picking = Picking(PickingState(compiled.site, compiled.orders, stock))
        self.turns = 0
        self.on_plan = True
        self._announced = 0

    @property
    def objective(self) -> float:
        """Value earned less the cost of walking."""
        return self.picking.state.objective

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.replies if self.picking.state.can_ship() else 1

    @property
    def malformed(self) -> int:
        """Replies without a command so far."""
        return self.picking.malformed

    @property
    def form(self) -> ReplyForm:
        """What a well-formed reply looks like."""
        return ReplyForm(PICK_WORDS, single_line=True)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the shift so far."""
        picking, state = self.picking, self.picking.state
        missed = len(state.open) + state.late
        return {
            "refused": float(picking.refused),
            "malformed_replies": float(picking.malformed),
            "walked": float(state.walked),
            "unshipped": float(len(state.open)),
            "tardiness": float(state.tardiness),
            "on_time": 1.0 - missed / len(self.compiled.orders),
        }

    def respond(self, text: str, complete: bool) -> Answer:
        """Apply a reply."""
        picking = self.picking
        feedback, nearness = picking.play(text, complete)
        self.on_plan = self.on_plan and follows(self.compiled.plan, self.turns, text, complete)
        self.turns += 1
        if picking.over:
            return Answer(feedback or "The shift is over.", nearness, StopReason.COMPLETED)
        if self.turns >= self.compiled.replies:
            return Answer(feedback or "The shift is over.", nearness, StopReason.TURN_LIMIT)
        state = picking.state
        line = self.compiled.prompt.clock(state)
        for release, new in self.compiled.news[self._announced :]:
            if release > state.now:
                break
            self._announced += 1
            feedback = f"{feedback}\n{new}" if feedback else new
        return Answer(f"{feedback}\n{line}" if feedback else line, nearness)


def follows(plan: Sequence[str], turn: int, text: str, complete: bool) -> bool:
    """Return whether a reply is the plan's at that turn."""
    return complete and turn < len(plan) and text == plan[turn]
