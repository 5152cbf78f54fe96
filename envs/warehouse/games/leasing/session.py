"""Leasing out storage: quote prices, scored on the expected earnings of the decisions.

As in keeping stock, a quote's regret is how much it lowers what is expected of this customer and
all to come; so luck pays nothing, the optimal quotes earn 1 on every path and no policy earns more.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tokengym.envs.core.errors import TaskError
from tokengym.envs.warehouse.games.game import Compiled, Form, Session
from tokengym.envs.warehouse.games.leasing.oracle import LeaseValues, solve_lease
from tokengym.envs.warehouse.games.leasing.rules import CustomerKind, LeaseModel, State
from tokengym.envs.warehouse.grammar import QUOTE_WORDS, quote_nearness, read_quote


@dataclass(frozen=True)
class Lease:
    """Months of leasing.

    Attributes:
        model: the warehouse.
        values: expected earnings of quoting best.
        kinds: the customer of every month.
        limits: the highest price that each of them pays.
    """

    model: LeaseModel
    values: LeaseValues
    kinds: tuple[CustomerKind, ...]
    limits: tuple[int, ...]

    exact = True

    @property
    def turns(self) -> int:
        """Number of decisions."""
        return self.model.months


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Lease:
    """Read months of leasing from the two parts of a Task.

    Raises:
        TaskError: if there is not a customer a month, a limit is none of its kind, or the first
            customer, who is shown at the start, is not certain.
    """
    model = LeaseModel.of(instance)
    kinds = tuple(model.kinds[int(number)] for number in answer["kinds"])
    limits = tuple(map(int, answer["limits"]))
    if not len(kinds) == len(limits) == model.months:
        raise TaskError(f"{model.months} months need as many customers and limits")
    for kind, limit in zip(kinds, limits, strict=True):
        if not kind.low <= limit <= kind.high:
            raise TaskError(f"{limit} is not a limit of {kind}")
    if model.chances[0][model.kinds.index(kinds[0])] != 1.0:
        raise TaskError(f"the first month's customer must be certain, got {model.chances[0]}")
    return Lease(model, solve_lease(model), kinds, limits)


class LeaseSession(Session[Lease]):
    """Months of leasing in progress.

    Attributes:
        taken: the bays that come back in 1, 2, ... months.
        quotes: of every month over the bays taken, the price, and whether it was signed.
    """

    form = Form(QUOTE_WORDS, True, read_quote, quote_nearness, nothing=0)
    end = ("The last month is over.",)

    def __init__(self, compiled: Compiled[Lease]) -> None:
        super().__init__(compiled)
        self.taken: State = compiled.problem.model.start
        self.quotes: list[tuple[int, int, bool]] = []
        self._regret = 0.0

    @property
    def customer(self) -> CustomerKind:
        """Who asks this month."""
        return self.compiled.problem.kinds[self.turns]

    @property
    def objective(self) -> float:
        """The expected earnings of the decisions so far if those to come are optimal."""
        return self.compiled.optimum - self._regret

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the months so far."""
        lease, months = self.compiled.problem, max(1, self.turns)
        signed = [
            (kind, price)
            for kind, (_, price, signs) in zip(lease.kinds, self.quotes, strict=False)
            if signs
        ]
        leased = sum(bays for bays, *_ in self.quotes) + sum(kind.bays for kind, _ in signed)
        return {
            **super().metrics(),
            "earned": float(sum(kind.earns(price) for kind, price in signed)),
            "occupancy": leased / (months * lease.model.bays),
            "signed": len(signed) / months,
        }

    def best_quote(self) -> int:
        """Return the price of the greatest expected earnings, 0 to turn the customer away."""
        values = self.compiled.problem.values.quotes(self.turns, self.taken, self.customer)
        return max(range(len(values)), key=values.__getitem__)

    def play(self, command: int) -> list[str]:
        """Quote a price, 0 for none, and let a month pass."""
        lease, kind, signed = self.compiled.problem, self.customer, None
        values = lease.values.quotes(self.turns, self.taken, kind)
        self._regret += max(values) - values[min(command, len(values) - 1)]
        if not command:
            news = "Turned away."
        elif lease.model.free(self.taken) < kind.bays:
            self.refused += 1
            news = "Refused: too few bays are free."
        elif command <= lease.limits[self.turns]:
            signed = kind
            news = f"Signed for ${kind.earns(command)}."
        else:
            news = "Too dear: not signed."
        self.quotes.append((sum(self.taken), command, signed is not None))
        self.taken = lease.model.next_month(self.taken, signed)
        return [news]
