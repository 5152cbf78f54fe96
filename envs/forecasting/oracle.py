"""The optimal forecast of a synthetic question: its exact posterior predictive probabilities."""

from collections.abc import Mapping
from typing import Any

from tokengym.envs.forecasting.families import FAMILIES
from tokengym.rewards.scoring import Forecast


def predictive(instance: Mapping[str, Any]) -> Forecast:
    """Return the outcomes' posterior predictive probabilities given all that is shown."""
    forecast = FAMILIES[instance["family"]].predictive(instance["shown"])
    return as_asked(forecast, negated=instance["negated"])


def as_asked(forecast: Forecast, *, negated: bool) -> Forecast:
    """Return a forecast in the order of the outcomes; (no, yes) is swapped if no is asked for."""
    return forecast[::-1] if negated else forecast
