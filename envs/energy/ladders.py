"""The ladders of energy's levels; one line for a level.

Their unit is money. A kWh or a kelvin by which the floor is missed costs more than any kWh that is
bought, so that a policy that breaks it does not pass for a cheap one.
"""

from collections.abc import Mapping
from types import MappingProxyType

from tokengym.envs.core.ladder import Ladder, Rung
from tokengym.envs.energy.levels import LEVELS

_MONEY = {"total_money_cost": -1.0, "total_cost": -1.0}
_RULES = (
    Rung("time_of_use", "thumb", "time of use"),
    Rung("worked", "thumb", "peak shaving"),
    Rung("backward", "textbook", "backward pass", "Cahn 1948"),
    Rung("mpc", "planner", "model predictive control", "Garcia et al. 1989"),
)
_SITE = Ladder(
    (
        Rung("hold", "thumb", "one unit always"),
        Rung("cycle_charging", "thumb", "cycle charging", "Barley & Winn 1996"),
        Rung("merit_order", "textbook", "merit order, a run ahead"),
        Rung("mpc", "planner", "mean-day DP", "Garcia et al. 1989"),
        Rung("worst_day", "planner", "worst-day DP", "Soyster 1973"),
        Rung("stochastic", "planner", "scenario DP", "Takriti et al. 1996"),
    ),
    "hold",
    "$",
    {"total_money_cost": -1.0, "total_cost": -10.0},
)
_FORESIGHT = Rung("oracle", "bound", "perfect foresight")

LADDERS: Mapping[str, Ladder] = MappingProxyType(
    {
        **dict.fromkeys(LEVELS, Ladder((*_RULES, _FORESIGHT), "hold", "$", _MONEY)),
        # Model predictive control is left out of both: a ladder of it takes half an hour.
        "soma": Ladder((*_RULES[:3], _FORESIGHT), "hold", "$", _MONEY),
        "commit": _SITE,
        "commit_6": _SITE,
    }
)
