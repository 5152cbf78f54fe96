"""Rules for buying one article: each gives the units to order, from what was shown alone."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul
from statistics import NormalDist, fmean, stdev

from tokengym.envs.warehouse.games.buying.rules import MOST_UNITS, Supply

Rule = Callable[[Supply], int]

_NORMAL = NormalDist()
_FORGETTING = 0.8
"""Weight of a period's demand relative to the next one's."""
_USED = 0.75
"""Share of the mean demand of a period that an order may have without regard to what is earned."""
_HALF, _PART = 0.5, 0.2
_CAP = 0.95
"""Probability with which a period's demand stays below the cap on an order."""


def mean_past_demand(supply: Supply) -> int:
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


def proportional(supply: Supply) -> int:
    """Order recent demand, more by half the safety, less a fifth of what is on hand.

    Demand is divided by the share of orders that arrive. Source: order-up-to rules that close a
    part of the gap, Dejonckheere, Disney, Lambrecht and Towill, European Journal of Operational
    Research 147 (2003).
    """
    (mean, spread), odds = _recent(supply.seen), _deliveries(supply)
    if min(odds) >= supply.terms.periods - supply.period:
        return 0
    wanted = mean / sum(odds.values()) + _HALF * _safety(supply) * spread
    return _units(wanted - _PART * supply.on_hand)


def adaptive(supply: Supply) -> int:
    """Order up to the base stock of recent demand, within what a period can be expected to use.

    Demand of a period counts less by a fifth for every period since. Units on order count by the
    probability that they still arrive. Where delivery takes time, what comes late piles up, so that
    no order exceeds most of a period's demand and, for safety, a deviation of what a period uses
    less what arrives in it: an order that may come in any of several periods, or never, makes
    arrivals vary more than demand does.
    """
    terms = supply.terms
    mean, spread = _recent(supply.seen)
    odds = _deliveries(supply)
    arrives = sum(odds.values())
    position = float(supply.on_hand)
    for at, units in supply.pending.items():
        later = sum(odd for lead, odd in odds.items() if lead >= supply.period - at)
        position += units * (later / (later + 1.0 - arrives) if later else 0.0)
    left = terms.periods - supply.period
    if min(odds) >= left:
        return 0
    lead = sum(lead * odd for lead, odd in odds.items()) / arrives
    periods, safety = min(1.0 + lead, left), _safety(supply)
    level = periods * mean + safety * math.sqrt(periods) * spread
    if terms.promised:
        arrivals = mean * math.sqrt(sum(odd * (1.0 - odd) for odd in odds.values()))
        cap = _USED * mean + safety * math.hypot(spread, arrivals)
    else:
        cap = mean + _NORMAL.inv_cdf(_CAP) * spread
    return _units(min(level - position, cap))


def _recent(seen: Sequence[int]) -> tuple[float, float]:
    """Return mean and deviation of demand, each period weighing less than the next one."""
    weights = [_FORGETTING ** (len(seen) - 1 - at) for at in range(len(seen))]
    total = sum(weights)
    mean = sum(map(mul, weights, seen)) / total
    variance = sum(w * (units - mean) ** 2 for w, units in zip(weights, seen, strict=True)) / total
    count = total**2 / sum(w * w for w in weights)
    return mean, math.sqrt(variance * count / max(count - 1.0, 1.0))


def _deliveries(supply: Supply) -> dict[int, float]:
    """Return the probability of each lead time; they sum to that of arriving at all.

    An order older than any that arrived is taken for lost. An unreliable supplier is expected to be
    a period early, punctual or a period late until seen to be otherwise.
    """
    promised, leads = supply.terms.promised, [then - at for at, then in supply.arrived]
    if supply.terms.reliable:
        return {promised: 1.0}
    longest = max([promised + 1, *leads])
    gone = sum(supply.period - at > longest for at in supply.pending)
    arrives = (len(leads) + 1.5) / (len(leads) + gone + 2.0)
    seen = [*leads, *range(max(0, promised - 1), promised + 2)]
    return {lead: arrives * seen.count(lead) / len(seen) for lead in sorted(set(seen))}


def _estimates(supply: Supply) -> tuple[float, float, int]:
    """Return mean and deviation of all demand seen, and the periods an order has to cover."""
    return *_moments(supply.seen), 1 + supply.terms.promised


@lru_cache(maxsize=128)
def _moments(seen: tuple[int, ...]) -> tuple[float, float]:
    """Return mean and deviation; rollouts of a Task see the same demand again and again."""
    return fmean(seen), stdev(seen) if len(seen) > 1 else 0.0


def _safety(supply: Supply) -> float:
    """Return the standard deviations of safety at which too few and too many cost the same."""
    terms = supply.terms
    enough = terms.profit / (terms.profit + terms.holding)
    return _NORMAL.inv_cdf(min(enough, 1.0 - 1e-9))


def _units(units: float) -> int:
    return max(0, min(math.ceil(units - 1e-9), MOST_UNITS))
