"""The families of synthetic questions, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.forecasting.families import (
    autoregression,
    branching,
    censored,
    conditions,
    contest,
    frequency,
    ledger,
    markov,
    poisson,
    polls,
    ranges,
    regimes,
    twins,
    voter,
    walk,
    witnesses,
)
from tokengym.envs.forecasting.families.base import Family
from tokengym.envs.forecasting.families.conjunction import conjunction

_MODULES = (
    *(frequency, contest, poisson, walk, markov, branching, autoregression, polls, voter),
    *(regimes, witnesses, censored, conditions, ledger),
)
_SIMPLE = (*(module.FAMILY for module in _MODULES), *ranges.FAMILIES, twins.FAMILY)
_PARTS = {family.name: family for family in (frequency.FAMILY, contest.FAMILY, branching.FAMILY)}

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (*_SIMPLE, conjunction(_PARTS))}
)
