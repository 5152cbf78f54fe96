"""Rules for buying one article: each gives the units to order, from what was shown alone."""

import math
from collections.abc import Callable, Sequence
from operator import mul
from statistics import NormalDist, fmean, stdev

from tokengym.envs.warehouse.games.buying.rules import MOST_UNITS, Supply

Rule = Callable[[Supply], int]

_NORMAL = NormalDist()
_FORGETTING = 0.8
"""Weight of a period's demand relative to the next one's."""
_CAP = 0.95
"""Probability with which a period's demand stays below the cap on an order."""


def usual(supply: Supply) -> int:
    """Order, every period, the average demand before the first."""
    return _units(fmean(supply.terms.history))


def base_stock(supply: Supply) -> int:
    """Order up to the base stock for stationary demand and a reliable supplier.

    The policy that InventoryBench calls OR, without its cap.
    """
    mean, spread, periods = _estimates(supply)
    level = periods * mean + _safety(supply) * math.sqrt(periods) * spread
    return _units(level - supply.on_hand - sum(supply.pending.values()))


def capped_base_stock(supply: Supply) -> int:
    """Order up to the base stock, but no more than one period's demand at its 95 % quantile.

    Source: the OR baseline of InventoryBench, after Xin, Operations Research 69 (2021).
    """
    mean, spread, _ = _estimates(supply)
    return min(base_stock(supply), _units(mean + _NORMAL.inv_cdf(_CAP) * spread))


def adaptive(supply: Supply) -> int:
    """Order up to the base stock of recent demand, with the supplier's observed deliveries.

    Demand of a period counts less by a fifth for every period since. An order older than any that
    arrived is taken for lost, and the others count by the probability that they still arrive. Where
    delivery takes time, no order exceeds one period's demand: what comes late would pile up.
    """
    terms = supply.terms
    mean, spread = _recent(supply.seen)
    chance, leads = _deliveries(supply)
    expected = [*leads, terms.promised]
    position = float(supply.on_hand)
    for at, units in supply.pending.items():
        age = supply.period - at
        later = chance * sum(lead >= age for lead in expected) / len(expected)
        position += units * (later / (later + 1.0 - chance) if later else 0.0)
    left = terms.periods - supply.period
    if terms.promised >= left:
        return 0
    periods = min(1.0 + fmean(expected), left)
    level = periods * mean + _safety(supply) * math.sqrt(periods) * spread
    cap = mean if terms.promised else mean + _NORMAL.inv_cdf(_CAP) * spread
    return _units(min(level - position, cap) / chance)


def _recent(seen: Sequence[int]) -> tuple[float, float]:
    """Return mean and deviation of demand, each period weighing less than the next one."""
    weights = [_FORGETTING ** (len(seen) - 1 - at) for at in range(len(seen))]
    total = sum(weights)
    mean = sum(map(mul, weights, seen)) / total
    variance = sum(w * (units - mean) ** 2 for w, units in zip(weights, seen, strict=True)) / total
    count = total**2 / sum(w * w for w in weights)
    return mean, math.sqrt(variance * count / max(count - 1.0, 1.0))


def _deliveries(supply: Supply) -> tuple[float, list[int]]:
    """Return the probability that an order arrives, and the lead times of those that did."""
    leads = [then - at for at, then in supply.arrived]
    if supply.terms.reliable:
        return 1.0, leads
    longest = max([supply.terms.promised + 1, *leads])
    gone = sum(supply.period - at > longest for at in supply.pending)
    return (len(leads) + 1.5) / (len(leads) + gone + 2.0), leads


def _estimates(supply: Supply) -> tuple[float, float, int]:
    """Return mean and deviation of all demand seen, and the periods an order has to cover."""
    seen = supply.seen
    spread = stdev(seen) if len(seen) > 1 else 0.0
    return fmean(seen), spread, 1 + supply.terms.promised


def _safety(supply: Supply) -> float:
    """Return the standard deviations of safety at which too few and too many cost the same."""
    terms = supply.terms
    enough = terms.profit / (terms.profit + terms.holding)
    return _NORMAL.inv_cdf(min(enough, 1.0 - 1e-9))


def _units(units: float) -> int:
    return max(0, min(math.ceil(units - 1e-9), MOST_UNITS))
