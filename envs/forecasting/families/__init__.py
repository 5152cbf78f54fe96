"""The families of synthetic questions, by name."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.forecasting.families import contest, frequency, poisson
from tokengym.envs.forecasting.families.base import Family

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {family.name: family for family in (frequency.FAMILY, contest.FAMILY, poisson.FAMILY)}
)
