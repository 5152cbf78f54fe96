"""The ladders of the debate's levels, for the predictor: one line for a level."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.core.ladder import Ladder, Rung
from tokengym.envs.disruption.evidence import LEVELS

_RULES = (
    Rung("majority", "thumb", "base rate"),
    Rung("scripted", "thumb", "first year's label"),
    Rung("naive_bayes", "textbook", "naive Bayes", "Maron 1961"),
    Rung("logistic", "textbook", "regression on 2000 papers", "Cox 1958"),
    Rung("oracle", "planner", "posterior, searched claims", "Bayes 1763"),
)

LADDERS: Mapping[str, Ladder] = MappingProxyType(dict.fromkeys(LEVELS, Ladder(_RULES, "null")))
