"""The ladders of forecasting's levels; one line for a level."""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.core.ladder import Ladder, Rung
from tokengym.envs.forecasting.levels import LEVELS

_RULES = (
    Rung("base_rate", "thumb", "base rate"),
    Rung("empirical", "textbook", "frequencies so far"),
    Rung("fitted", "textbook", "regression on 200 Tasks", "Cox 1958"),
)
_LAW = Rung("likeliest", "planner", "likeliest law", "Fisher 1922")
_LOOKS = (
    Rung("empirical", "thumb", "never look"),
    Rung("read_all", "thumb", "read everything"),
    Rung("per_price", "thumb", "four notes by gain per price"),
    Rung("threshold", "textbook", "sequential to a threshold", "Wald 1945"),
    Rung("report_and_keys", "textbook", "a report with its keys"),
    Rung("fixed_set", "planner", "best fixed set"),
    Rung("two_steps", "planner", "two notes ahead"),
    Rung("three_steps", "planner", "three notes ahead"),
    Rung("oracle", "optimum", "exact dynamic program", "Bellman 1957"),
)
_POSTERIOR = Rung("oracle", "optimum", "posterior", "Bayes 1763")

LADDERS: Mapping[str, Ladder] = MappingProxyType(
    {
        **dict.fromkeys(LEVELS, Ladder((*_RULES, _POSTERIOR), "half")),
        **dict.fromkeys(("expert", "twins"), Ladder((*_RULES, _LAW, _POSTERIOR), "half")),
        **dict.fromkeys(("desk", "desk_errata"), Ladder(_LOOKS, "half")),
    }
)
