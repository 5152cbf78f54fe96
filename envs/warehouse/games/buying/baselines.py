"""Scripted policies of buying. All but the oracle use only what the Turns have shown."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tokengym.envs.warehouse.games.buying import heuristics
from tokengym.envs.warehouse.games.buying.rules import MOST_UNITS, SKU, Supply
from tokengym.envs.warehouse.games.buying.session import BuyingSession
from tokengym.envs.warehouse.games.stock.baselines import same_reorders
from tokengym.envs.warehouse.grammar import write_reorder
from tokengym.envs.warehouse.levels import BuyingLevel

Buy = Callable[[Supply, np.random.Generator], int]
"""From the state of buying and randomness to the units to order."""

_NOISE = 0.2
_UNITS = (0, 20, 40, 60, 80, 100, 120, 160)


def _off_target(supply: Supply, rng: np.random.Generator) -> int:
    off = float(rng.normal()) * _NOISE * heuristics.mean_past_demand(supply)
    return max(0, min(heuristics.base_stock(supply) + round(off), MOST_UNITS))


_BUYS: Mapping[str, Buy] = {
    "null": lambda _supply, _rng: 0,
    "random": lambda supply, rng: int(rng.integers(2 * heuristics.mean_past_demand(supply) + 1)),
    "fcfs": lambda supply, _rng: heuristics.mean_past_demand(supply),
    "newsvendor": lambda supply, _rng: heuristics.capped_base_stock(supply),
    "textbook": lambda supply, _rng: heuristics.proportional(supply),
    "replan": lambda supply, _rng: heuristics.adaptive(supply),
    "noisy": _off_target,
    "oracle": lambda supply, _rng: supply.hindsight_order(),
}


def _buying(buy: Buy) -> Callable[[BuyingSession, np.random.Generator], str]:
    return lambda session, rng: write_reorder([(SKU, buy(session.supply, rng))])


POLICIES: Mapping[str, Callable[[BuyingSession, np.random.Generator], str]] = MappingProxyType(
    {name: _buying(buy) for name, buy in _BUYS.items()}
)


def blind(_level: BuyingLevel) -> dict[str, Callable[[int], str]]:
    """Return policies that order the same every period."""
    return {f"orders of {units}": same_reorders(1, units) for units in _UNITS}
