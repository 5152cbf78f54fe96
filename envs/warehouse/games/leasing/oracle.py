"""The exact optimum of leasing out storage, by dynamic programming.

Source: Gallego and van Ryzin, Management Science 40 (1994), for prices of what is scarce.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from tokengym.envs.warehouse.games.leasing.generator import draw_customers
from tokengym.envs.warehouse.games.leasing.heuristics import Quote, lowest
from tokengym.envs.warehouse.games.leasing.rules import CustomerKind, LeaseModel, State
from tokengym.rewards.arrays import Floats

_LEAST_GAP = 0.2
"""Least gap between reference and optimum in expectation, as a share of it: prices must matter."""


class LeaseValues:
    """Expected earnings to the end, by month and state, of quoting best or by a rule.

    Args:
        model: the warehouse.
        rule: what is quoted wherever there is room; the best price if `None`.
    """

    def __init__(self, model: LeaseModel, rule: Quote | None = None) -> None:
        self.model = model
        self._number = {state: number for number, state in enumerate(model.states())}
        free = np.array([model.free(state) for state in self._number])
        refused = self._targets(None)
        # The states that a contract leads to, its fit, and prices with the odds of a signature.
        kinds = [
            (self._targets(kind), free >= kind.bays, *_prices(kind, rule)) for kind in model.kinds
        ]
        self._later = np.zeros((model.months + 1, len(self._number)))
        for month in reversed(range(model.months)):
            after = self._later[month + 1]
            away = after[refused]
            for chance, (target, fits, earns_P, signs_P) in zip(
                model.chances[month], kinds, strict=True
            ):
                gains_PS = signs_P[:, None] * (earns_P[:, None] + (after[target] - away))
                self._later[month] += chance * (away + np.where(fits, gains_PS.max(axis=0), 0.0))

    def _targets(self, signed: CustomerKind | None) -> Any:
        """Return by state the number of the next one; of states without room, any."""
        model, number = self.model, self._number
        return np.array([number.get(model.next_month(state, signed), 0) for state in number])

    def expected(self, month: int, state: State) -> float:
        """Return the expected earnings from a month on, before its customer is known."""
        return float(self._later[month, self._number[state]])

    def quotes(self, month: int, state: State, kind: CustomerKind) -> list[float]:
        """Return the expected earnings by price from 0, up to one that nobody pays.

        Where there is no room, or the price is 0 (turn away), nobody signs.
        """
        model = self.model
        refused = self.expected(month + 1, model.next_month(state, None))
        if model.free(state) < kind.bays:
            return [refused] * (kind.high + 2)
        gain = self.expected(month + 1, model.next_month(state, kind)) - refused
        return [
            refused + (kind.signs(price) * (kind.earns(price) + gain) if price else 0.0)
            for price in range(kind.high + 2)
        ]


def _prices(kind: CustomerKind, rule: Quote | None) -> tuple[Floats, Floats]:
    """Return earnings and odds by price that may be quoted; without a rule, also by none."""
    prices = range(kind.low, kind.high + 2) if rule is None else [rule(kind)]
    return np.array([*map(kind.earns, prices)], float), np.array([*map(kind.signs, prices)])


@lru_cache(maxsize=64)
def solve_lease(model: LeaseModel) -> LeaseValues:
    """Return the expected earnings of quoting best; they are shared."""
    return LeaseValues(model)


def solve(
    instance: Mapping[str, Any], rng: np.random.Generator, outcomes: Any
) -> dict[str, Any] | None:
    """Return the expected earnings of optimum and reference, and who asks.

    Args:
        instance: the warehouse.
        rng: randomness of the customers.
        outcomes: the `kinds` and `limits` by month; `None` to draw them.

    Returns:
        the answer of a Task; `None` if optimum and reference are too close.
    """
    customers = draw_customers(instance, rng) if outcomes is None else outcomes
    model = LeaseModel.of(instance)
    best = solve_lease(model).expected(0, model.start)
    reference = LeaseValues(model, lowest).expected(0, model.start)
    if best - reference < _LEAST_GAP * best:
        return None
    return {**customers, "optimum": best, "reference": reference}
