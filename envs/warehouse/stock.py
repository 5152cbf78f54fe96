"""Mode `stock`: keep items in stock against random demand, one decision a review.

The objective is the expected cost of the decisions taken: by the value function of the optimal
policy, a decision's regret is how much it raises the expected cost of today and all days after. The
sum of regrets has the same mean as the realised cost above the optimal one, without the luck of the
demand drawn, so the optimal policy earns 1 on every path and no policy earns more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import mul
from typing import Any, ClassVar, Self

import numpy as np

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.grammar import read_reorder
from tokengym.envs.warehouse.prompt import REORDER_FORM, Answer, sales_line, stock_opening
from tokengym.envs.warehouse.reorder_rules import lean
from tokengym.envs.warehouse.shelf import Item, Shelf, reorder
from tokengym.envs.warehouse.stock_oracle import (
    FloatArray,
    StockModel,
    expected_cost,
    order_up_to,
)
from tokengym.envs.warehouse.stock_oracle import solve as solve_item

Table = Mapping[tuple[int, ...], Sequence[float]]
"""Cost-to-go: by what is due on the days after tomorrow, a row over what is on hand tomorrow."""

_DECIMALS = 6


@dataclass(frozen=True)
class Solution:
    """The value function of an item in the form a step reads.

    Attributes:
        average: optimal cost a day.
        at_review: cost-to-go on a review day, by what is due, then by what is on hand.
        next_day: the same on the day after a review day.
        left: by units on hand, the probabilities that 0, 1, ... are left in the evening.
        cost: expected cost of a day by units on hand.
        regrets: those asked for so far, by order, units on hand and what is due.
    """

    average: float
    at_review: Table
    next_day: Table
    left: tuple[tuple[float, ...], ...]
    cost: tuple[float, ...]
    regrets: dict[tuple[int, ...], float] = field(default_factory=dict, compare=False)

    def cost_of(self, shelf: Shelf, order: int) -> float:
        """Return the expected relative cost of ordering `order` units now and acting best after."""
        on_hand = shelf.on_hand
        arriving, *later = *shelf.due, order
        row = self.next_day[tuple(later)]
        # What is left in the evening pairs off with the row from what arrives on.
        follows: float = sum(map(mul, self.left[on_hand], row[arriving:]))
        fixed = shelf.item.model.fixed if order else 0.0
        return self.cost[on_hand] + fixed + follows - self.average

    def regret(self, shelf: Shelf, order: int) -> float:
        """Return by how much `order` raises the expected cost above the least, `>= 0`.

        The rollouts of a Task meet the same states, so what was worked out is kept.
        """
        state = (order, shelf.on_hand, *shelf.due)
        regret = self.regrets.get(state)
        if regret is None:
            best = self.at_review[state[2:]][shelf.on_hand]
            regret = self.regrets[state] = max(0.0, self.cost_of(shelf, order) - best)
        return regret

    def best_order(self, shelf: Shelf) -> int:
        """Return the order of the least expected cost."""
        return min(range(shelf.room + 1), key=lambda order: self.cost_of(shelf, order))


@dataclass(frozen=True)
class StockProblem:
    """A stretch of days as it is played and scored; built once per Task.

    Attributes:
        items: what is kept.
        solutions: the value function of each item.
        demand: units asked for, by item and day.
        reviews: number of decisions.
        review: days between them.
        reference: minus the expected regret of the reference policy.
        optimum: minus the expected regret of the optimal policy, 0.
    """

    items: tuple[Item, ...]
    solutions: tuple[Solution, ...]
    demand: tuple[tuple[int, ...], ...]
    reviews: int
    review: int
    reference: float
    optimum: float

    exact: ClassVar[bool] = True

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Frozen all the way down: a copy is the problem itself."""
        return self

    @classmethod
    def of(cls, instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Self:
        """Read a problem from a Task's two parts."""
        items = read_items(instance)
        demand = tuple(tuple(map(int, path)) for path in answer["demand"])
        reviews, review = int(instance["reviews"]), int(instance["review"])
        if [len(path) for path in demand] != [reviews * review] * len(items):
            raise TaskError(f"demand covers {reviews * review} days of {len(items)} items")
        solutions = zip(items, answer["solutions"], strict=True)
        return cls(
            items,
            tuple(_solution(item.model, entry) for item, entry in solutions),
            demand,
            reviews,
            review,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        shelves = [Shelf(item) for item in self.items]
        return stock_opening(self.items, self.reviews * self.review, self.review, shelves)

    @cached_property
    def asked(self) -> list[list[tuple[int, ...]]]:
        """Units asked for by review, item and day of the review cycle."""
        days = range(0, self.reviews * self.review, self.review)
        return [[path[day : day + self.review] for path in self.demand] for day in days]

    def begin(self, turn_limit: int) -> "StockSession":
        """Open a stretch; `turn_limit` must cover its reviews."""
        if self.reviews > turn_limit:
            raise TaskError(f"{self.reviews} reviews exceed the level's {turn_limit} turns")
        return StockSession(self)


class StockSession:
    """A stretch of days under way."""

    def __init__(self, problem: StockProblem) -> None:
        self.problem = problem
        self.shelves = [Shelf(item) for item in problem.items]
        self.turns = 0
        self.refused = 0
        self.malformed = 0
        self._regret = 0.0
        self._cost = 0.0
        self._sold = 0
        self._lost = 0

    @property
    def opening(self) -> str:
        """The first prompt."""
        return self.problem.opening

    @property
    def objective(self) -> float:
        """Minus the regret of the decisions so far, `<= 0`."""
        return -self._regret

    def metrics(self) -> dict[str, float]:
        """Return what happened, for logs: the realised cost, and the share of demand served."""
        asked = self._sold + self._lost
        served = 1.0 - self._lost / asked if asked else 1.0
        return {
            "refused": float(self.refused),
            "malformed_replies": float(self.malformed),
            "total_cost": self._cost,
            "fill_rate": served,
        }

    def best_orders(self) -> list[tuple[str, int]]:
        """Return the optimal order of every item."""
        return [
            (shelf.item.sku, solution.best_order(shelf))
            for shelf, solution in zip(self.shelves, self.problem.solutions, strict=True)
        ]

    def respond(self, text: str, complete: bool) -> Answer:
        """Play a reply and the days to the next review."""
        said = []
        lines = read_reorder(text, complete=complete)
        in_form = lines is not None
        if lines is None:
            self.malformed += 1
            said.append(complaint(text, REORDER_FORM, complete=complete))
            lines = []
        orders, refusals = reorder(self.shelves, lines)
        if refusals:
            self.refused += 1
            said.append(f"Refused: {'; '.join(refusals)}.")
        news = self._run(orders)
        problem = self.problem
        if self.turns == problem.reviews:
            return "\n".join([*said, "The last day is over."]), in_form, StopReason.COMPLETED
        said.append(f"Day {self.turns * problem.review + 1}")
        return "\n".join(said + news), in_form, None

    def _run(self, orders: Sequence[int]) -> list[str]:
        """Place orders and play the days of a review cycle: what was sold of each item."""
        regret, cost, total, missed = self._regret, self._cost, self._sold, self._lost
        asked = self.problem.asked[self.turns]
        news = []
        for shelf, order, solution, units in zip(
            self.shelves, orders, self.problem.solutions, asked, strict=True
        ):
            regret += solution.regret(shelf, order)
            left, sold, lost = shelf.sell(order, units)
            model = shelf.item.model
            cost += model.holding * left + model.lost * lost + (model.fixed if order else 0.0)
            total += sold
            missed += lost
            news.append(sales_line(shelf, sold, lost))
        self._regret, self._cost, self._sold, self._lost = regret, cost, total, missed
        self.turns += 1
        return news


def read_items(instance: Mapping[str, Any]) -> tuple[Item, ...]:
    """Read the items of an instance.

    Raises:
        TaskError: if there are none or two share a name.
    """
    items = tuple(Item.of(entry, int(instance["review"])) for entry in instance["items"])
    if not items or len({item.sku for item in items}) != len(items):
        raise TaskError(f"items have different names, got {[item.sku for item in items]}")
    return items


def draw_demand(instance: Mapping[str, Any], rng: np.random.Generator) -> list[list[int]]:
    """Draw the units asked for, by item and day."""
    days = int(instance["reviews"]) * int(instance["review"])
    return [
        rng.choice(len(item.model.demand), size=days, p=item.model.demand).tolist()
        for item in read_items(instance)
    ]


def solve(instance: Mapping[str, Any], demand: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the value function of every item and the expected regret of the reference."""
    reviews, review = int(instance["reviews"]), int(instance["review"])
    expected = 0.0
    solutions = []
    for item in read_items(instance):
        model = item.model
        values = solve_item(model)
        start = (item.stock, *item.due)
        costs = expected_cost(
            model,
            order_up_to(model, lean(model).level),
            reviews=reviews,
            terminal=values.at_review,
        )
        least = reviews * review * values.average + float(values.at_review[start])
        expected += float(costs[start]) - least
        solutions.append(
            {
                "average": values.average,
                "at_review": _rows(model, values.at_review),
                "next_day": None if review == 1 else _rows(model, values.next_day),
            }
        )
    return {
        "demand": [list(path) for path in demand],
        "optimum": 0.0,
        "reference": -expected,
        "solutions": solutions,
    }


def _rows(model: StockModel, value: FloatArray) -> dict[str, list[float]]:
    """Write a value function: by what is due, a row over the units on hand that still fit."""
    due = [()] if model.lead == 1 else np.ndindex(*value.shape[1:])
    return {
        ",".join(map(str, rest)): value[(slice(model.room + 1 - sum(rest)), *rest)]
        .round(_DECIMALS)
        .tolist()
        for rest in due
        if sum(rest) <= model.room
    }


def _solution(model: StockModel, entry: Mapping[str, Any]) -> Solution:
    """Read a solution as `solve` wrote it."""
    at_review = _table(entry["at_review"])
    next_day = at_review if entry["next_day"] is None else _table(entry["next_day"])
    left = tuple(tuple(row[: x + 1]) for x, row in enumerate(model.left.tolist()))
    return Solution(float(entry["average"]), at_review, next_day, left, tuple(model.cost.tolist()))


def _table(rows: Mapping[str, Sequence[float]]) -> Table:
    return {
        tuple(int(units) for units in due.split(",") if units): tuple(row)
        for due, row in rows.items()
    }
