"""The families of synthetic questions, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.forecasting.families import (
    autoregression,
    branching,
    buttons,
    censored,
    contest,
    evidence,
    frequency,
    markov,
    patterns,
    poisson,
    polls,
    voter,
    walk,
)
from tokengym.envs.forecasting.families.base import Family
from tokengym.envs.forecasting.families.conjunction import conjunction

_MODULES = (
    *(frequency, contest, poisson, walk, markov, branching, autoregression, polls, voter),
    censored,
)
_LAWS = (patterns.SWITCHES, patterns.GAUGES, buttons.BUTTONS)
_SIMPLE = (
    *(module.FAMILY for module in _MODULES),
    *map(evidence.question, _LAWS),
    *map(evidence.twins, _LAWS),
)
_PARTS = {family.name: family for family in (frequency.FAMILY, contest.FAMILY, branching.FAMILY)}

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (*_SIMPLE, conjunction(_PARTS))}
)
