"""Mode `lease`: quote prices for storage, scored on the expected earnings of the decisions.

As in `stock`, a quote's regret is how much it lowers what is expected of this customer and all to
come; so luck pays nothing, the optimal quotes earn 1 on every path and no policy earns more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from tokengym.envs.core.errors import TaskError
from tokengym.envs.core.form import ReplyForm
from tokengym.envs.core.grammar import complaint
from tokengym.envs.core.turn import StopReason
from tokengym.envs.warehouse.grammar import quote_nearness, read_quote
from tokengym.envs.warehouse.lease import (
    Kind,
    LeaseModel,
    State,
    Values,
    read_customers,
    solve_lease,
)
from tokengym.envs.warehouse.prompt import QUOTE_WORDS, Answer, Prompt


@dataclass(frozen=True)
class CompiledLease:
    """Months of leasing compiled.

    Attributes:
        model: the warehouse.
        values: expected earnings of quoting best.
        kinds: the customer of every month.
        limits: the highest price that each of them pays.
        reference: what leasing to everybody at the lowest limit is expected to earn.
        optimum: what the best quotes are expected to earn.
        prompt: writes the texts.
    """

    model: LeaseModel
    values: Values
    kinds: tuple[Kind, ...]
    limits: tuple[int, ...]
    reference: float
    optimum: float
    prompt: Prompt

    exact: ClassVar[bool] = True

    @classmethod
    def of(
        cls, instance: Mapping[str, Any], answer: Mapping[str, Any], prompt: Prompt, replies: int
    ) -> Self:
        """Compile the two parts of a Task.

        Raises:
            TaskError: if there are more months than `replies`, or the outcomes do not fit.
        """
        model = LeaseModel.of(instance)
        if model.months > replies:
            raise TaskError(f"{model.months} months exceed the level's {replies} turns")
        if 1.0 not in model.chances[0]:
            raise TaskError(f"the first month's customer must be certain, got {model.chances[0]}")
        kinds, limits = read_customers(model, answer)
        return cls(
            model,
            solve_lease(model),
            kinds,
            limits,
            reference=float(answer["reference"]),
            optimum=float(answer["optimum"]),
            prompt=prompt,
        )

    @cached_property
    def opening(self) -> str:
        """The first prompt."""
        first = self.model.kinds[self.model.chances[0].index(1.0)]
        return self.prompt.lease_opening(self.model, first)


class LeaseSession:
    """Months of leasing in progress.

    Args:
        compiled: the months.

    Attributes:
        compiled: the months.
        state: the bays that come back in 1, 2, ... months.
        turns: months so far.
        refused: quotes for which there was no room so far.
        malformed: replies without a command so far.
        prices: the price of every contract signed so far, by month.
    """

    def __init__(self, compiled: CompiledLease) -> None:
        self.compiled = compiled
        self.state: State = compiled.model.start
        self.turns = 0
        self.refused = 0
        self.malformed = 0
        self.prices: dict[int, int] = {}
        self._regret = 0.0
        self._earned = 0
        self._taken = 0

    @property
    def customer(self) -> Kind:
        """Who asks this month."""
        return self.compiled.kinds[self.turns]

    @property
    def objective(self) -> float:
        """The expected earnings of the decisions so far if those to come are optimal."""
        return self.compiled.optimum - self._regret

    @property
    def replies(self) -> int:
        """Replies in an episode that has none but malformed ones."""
        return self.compiled.model.months

    @property
    def form(self) -> ReplyForm:
        """What a well-formed reply looks like."""
        return ReplyForm(QUOTE_WORDS, single_line=True)

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the months so far."""
        months = max(1, self.turns)
        return {
            "refused": float(self.refused),
            "malformed_replies": float(self.malformed),
            "earned": float(self._earned),
            "occupancy": self._taken / (months * self.compiled.model.bays),
            "signed": len(self.prices) / months,
        }

    def best_quote(self) -> int:
        """Return the price of the greatest expected earnings, 0 to turn the customer away."""
        values = self.compiled.values.quotes(self.turns, self.state, self.customer)
        return max(range(len(values)), key=values.__getitem__)

    def respond(self, text: str, complete: bool) -> Answer:
        """Apply a reply and let a month pass."""
        price, nearness, feedback = read_quote(text, complete=complete), None, []
        if price is None:
            self.malformed += 1
            nearness = quote_nearness(text)
            feedback.append(complaint(text, QUOTE_WORDS, complete=complete))
            price = 0
        feedback.append(self._quote(price))
        compiled = self.compiled
        if self.turns == compiled.model.months:
            feedback.append("The last month is over.")
            return Answer("\n".join(feedback), nearness, StopReason.COMPLETED)
        feedback.append(
            compiled.prompt.lease_state(compiled.model, self.turns, self.state, self.customer)
        )
        return Answer("\n".join(feedback), nearness)

    def _quote(self, price: int) -> str:
        """Quote a price, 0 for none, let a month pass, and say what came of it."""
        compiled, kind = self.compiled, self.customer
        model = compiled.model
        values = compiled.values.quotes(self.turns, self.state, kind)
        self._regret += max(values) - values[min(price, len(values) - 1)]
        signed = None
        if not price:
            news = "Turned away."
        elif model.free(self.state) < kind.bays:
            self.refused += 1
            news = "Refused: too few bays are free."
        elif price <= compiled.limits[self.turns]:
            signed = kind
            self.prices[self.turns] = price
            self._earned += kind.earns(price)
            news = f"Signed for ${kind.earns(price)}."
        else:
            news = "Too dear: not signed."
        self._taken += sum(self.state) + (signed.bays if signed else 0)
        self.state = model.next_month(self.state, signed)
        self.turns += 1
        return news
