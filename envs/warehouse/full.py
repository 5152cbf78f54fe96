"""Mode `full`: every day a reorder, then the day's orders; scored against an upper bound."""

from collections.abc import Sequence

from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.compiled import CompiledFull
from tokengym.envs.warehouse.days import Days
from tokengym.envs.warehouse.grammar import read_reorder, reorder_nearness
from tokengym.envs.warehouse.inventory import reorder
from tokengym.envs.warehouse.pick import Picking, follows
from tokengym.envs.warehouse.prompt import PICK_WORDS, REORDER_WORDS, Answer, stock_line


class FullSession:
    """Days under way.

    A day's picking ends when nothing more can be shipped, at `DONE`, or after one decision more
    than it has orders.

    Args:
        compiled: the days.

    Attributes:
        compiled: the days.
        days: the state of inventories and picking.
        turns: replies so far.
        on_plan: whether all of them were the plan's.
        malformed: replies without a command so far.
    """

    def __init__(self, compiled: CompiledFull) -> None:
        self.compiled = compiled
        self.days = Days(compiled.shop)
        self.turns = 0
        self.on_plan = True
        self._picking: Picking | None = None
        self._decisions = 0
        self._refused = 0
        self.malformed = 0
        self._lost = 0

    @property
    def picking(self) -> Picking | None:
        """Today's picking, or `None` while a reorder is awaited."""
        return self._picking

    @property
    def objective(self) -> float:
        """Value less all costs of the days closed."""
        return self.days.objective

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones: it ships nothing."""
        days, count = Days(self.compiled.shop), 0
        while not days.over:
            days.open([0] * len(days.inventories))
            count += 1
            if days.picking.can_ship():
                count += len(days.picking.open) + 1
            days.close()
        return count

    @property
    def form(self) -> ReplyForm:
        """What a well-formed reply looks like: in the morning a reorder, then trips."""
        if self._picking is None:
            return ReplyForm(REORDER_WORDS, single_line=False)
        return ReplyForm(PICK_WORDS, single_line=True)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the days so far."""
        books = self.compiled.shop.books
        asked = sum(order.units for book in books for order in book)
        return {
            "refused": float(self._refused),
            "malformed_replies": float(self.malformed),
            "lost": float(self._lost),
            "fill_rate": 1.0 - self._lost / asked if asked else 1.0,
        }

    def respond(self, text: str, complete: bool) -> Answer:
        """Apply a reply."""
        self.on_plan = self.on_plan and follows(self.compiled.plan, self.turns, text, complete)
        self.turns += 1
        days, picking = self.days, self._picking
        if picking is None:
            lines = read_reorder(text, complete=complete)
            nearness, feedback = None, []
            if lines is None:
                nearness = reorder_nearness(text, len(days.inventories))
                feedback.append(complaint(text, REORDER_WORDS, complete=complete))
            feedback += self._reorder(lines or [])
            feedback.append(self.compiled.book_texts[days.day])
            picking = self._picking = Picking(days.picking)
            self._decisions = len(picking.state.open) + 1
        else:
            outcome, nearness = picking.play(text, complete)
            feedback = [outcome] if outcome else []
            self._decisions -= 1
        if nearness is not None:
            self.malformed += 1
        if self._decisions and not picking.over:
            feedback.append(self.compiled.prompt.clock(picking.state))
            return Answer("\n".join(feedback), nearness)
        self._refused += picking.refused
        self._picking = None
        lost = days.close()
        self._lost += lost
        feedback.append(f"Day over, {lost} units lost." if lost else "Day over.")
        if days.over:
            return Answer("\n".join(feedback), nearness, StopReason.COMPLETED)
        feedback += self.compiled.prompt.morning(days.day + 1, map(stock_line, days.inventories))
        return Answer("\n".join(feedback), nearness)

    def _reorder(self, lines: Sequence[tuple[str, int]]) -> list[str]:
        """Place a reorder, open the day, and return the lines on what was refused."""
        units, refusals = reorder(self.days.inventories, lines)
        self.days.open(units)
        if not refusals:
            return []
        self._refused += 1
        return [f"Refused: {'; '.join(refusals)}."]
