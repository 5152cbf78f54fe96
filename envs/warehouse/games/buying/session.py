"""Buying one article under changing demand, scored as a share of what hindsight earns.

The optimum is what a plan made in hindsight earns, which knows demand and lead times: a bound that
no policy need reach. Buying nothing earns 0, the reference.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tokengym.envs.warehouse.games.buying.rules import SKU, Scenario, Supply, Terms
from tokengym.envs.warehouse.games.game import Compiled, Session
from tokengym.envs.warehouse.games.stock.rules import bullwhip
from tokengym.envs.warehouse.games.stock.session import reorder_form


def read(instance: Mapping[str, Any], answer: Mapping[str, Any]) -> Scenario:
    """Read a stretch of buying from the two parts of a Task."""
    return Scenario.of(Terms.of(instance), answer)


class BuyingSession(Session[Scenario]):
    """Periods of buying in progress.

    Attributes:
        supply: the state.
    """

    form = reorder_form(1)
    end = ("The last period is over.",)

    def __init__(self, compiled: Compiled[Scenario]) -> None:
        super().__init__(compiled)
        self.supply = Supply(compiled.problem)

    @property
    def objective(self) -> float:
        """What was earned so far."""
        return self.supply.earned

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the periods so far."""
        supply, scenario = self.supply, self.compiled.problem
        # InventoryBench divides by every unit asked for sold and none ever left.
        foresight = scenario.terms.profit * sum(scenario.demand)
        asked, sold = sum(supply.asked), sum(period.sold for period in supply.days)
        return {
            **super().metrics(),
            "normalized_reward": max(0.0, supply.earned / foresight) if foresight else 0.0,
            "fill_rate": sold / asked if asked else 1.0,
            **bullwhip([supply.days]),
        }

    def play(self, command: Sequence[tuple[str, int]]) -> list[str]:
        """Place an order and play the period."""
        unknown = [sku for sku, _ in command if sku != SKU]
        lines = [f"Refused: there is no item {unknown[0]}."] if unknown else []
        self.refused += bool(unknown)
        arrivals, sold, lost = self.supply.order(dict(command).get(SKU, 0))
        lines.append(self.compiled.texts.news(self.supply, arrivals, sold, lost))
        return lines
