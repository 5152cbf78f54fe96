"""Mode `stock`: keep items in stock against random demand, one decision per review.

The objective is the expected cost of the decisions taken: by the value function of the optimal
policy, a decision's regret is how much it raises the expected cost of today and all days after. The
sum of regrets has the same mean as the realised cost above the optimal one, without the luck of the
demand drawn, so the optimal policy earns 1 on every path and no policy earns more.
"""

from collections.abc import Sequence

from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.compiled import CompiledStock
from tokengym.envs.warehouse.grammar import read_reorder, reorder_nearness
from tokengym.envs.warehouse.inventory import Inventory, bullwhip, reorder
from tokengym.envs.warehouse.prompt import REORDER_WORDS, Answer, sales_line


class StockSession:
    """A stretch of days in progress.

    Args:
        compiled: the days.

    Attributes:
        compiled: the days.
        inventories: the inventory of each item.
        turns: reviews so far.
        refused: replies of which a line was refused so far.
        malformed: replies without a command so far.
    """

    def __init__(self, compiled: CompiledStock) -> None:
        self.compiled = compiled
        self.inventories = [Inventory(item) for item in compiled.items]
        self.turns = 0
        self.refused = 0
        self.malformed = 0
        self._regret = 0.0
        self._cost = 0.0
        self._sold = 0
        self._lost = 0
        self._placed: list[Sequence[int]] = []

    @property
    def objective(self) -> float:
        """Minus the expected cost of the decisions so far if those to come are optimal."""
        return self.compiled.optimum - self._regret

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.reviews

    @property
    def form(self) -> ReplyForm:
        """What a well-formed reply looks like."""
        return ReplyForm(REORDER_WORDS, single_line=False)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the days so far: realised cost, fill rate, bullwhip effect."""
        asked = self._sold + self._lost
        reviews = self.compiled.asked[: self.turns]
        wanted = [[sum(days) for days in items] for items in zip(*reviews, strict=True)]
        return {
            "refused": float(self.refused),
            "malformed_replies": float(self.malformed),
            "total_cost": self._cost,
            "fill_rate": 1.0 - self._lost / asked if asked else 1.0,
            **bullwhip(list(zip(*self._placed, strict=True)), wanted),
        }

    def best_orders(self) -> list[tuple[str, int]]:
        """Return the optimal order of every item."""
        return [
            (inventory.item.sku, solution.best_order(self.turns, inventory))
            for inventory, solution in zip(self.inventories, self.compiled.solutions, strict=True)
        ]

    def respond(self, text: str, complete: bool) -> Answer:
        """Apply a reply and play the days to the next review."""
        feedback = []
        lines = read_reorder(text, complete=complete)
        nearness = None
        if lines is None:
            self.malformed += 1
            nearness = reorder_nearness(text, len(self.inventories))
            feedback.append(complaint(text, REORDER_WORDS, complete=complete))
            lines = []
        orders, refusals = reorder(self.inventories, lines)
        if refusals:
            self.refused += 1
            feedback.append(f"Refused: {'; '.join(refusals)}.")
        news = self._run(orders)
        compiled = self.compiled
        if self.turns == compiled.reviews:
            text = "\n".join([*feedback, "The last day is over."])
            return Answer(text, nearness, StopReason.COMPLETED)
        feedback += compiled.prompt.morning(self.turns * compiled.review + 1, news)
        return Answer("\n".join(feedback), nearness)

    def _run(self, orders: Sequence[int]) -> list[str]:
        """Place orders, play the days of a review cycle, and return a line of sales by item."""
        regret, cost, total, missed = self._regret, self._cost, self._sold, self._lost
        compiled, review = self.compiled, self.turns
        news = []
        for inventory, order, solution, units, late in zip(
            self.inventories,
            orders,
            compiled.solutions,
            compiled.asked[review],
            compiled.late,
            strict=True,
        ):
            regret += solution.regret(review, inventory, order)
            left, sold, lost = inventory.sell(order, units, late=late[review])
            model = inventory.item.model
            cost += model.holding * left + model.lost * lost + (model.fixed if order else 0.0)
            total += sold
            missed += lost
            news.append(sales_line(inventory, sold, lost))
        self._regret, self._cost, self._sold, self._lost = regret, cost, total, missed
        self.turns += 1
        self._placed.append(orders)
        if self.turns == compiled.reviews:
            for inventory in self.inventories:
                self._cost += inventory.item.model.leftover * inventory.position
        return news
