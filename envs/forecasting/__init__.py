"""Forecast-v0: one question, one probability, scored by a strictly proper rule."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.rewards.bounds import UNIT, dyadic
from tokengym.rewards.control import FlatFloor

SPEC = WorldSpec(
    id="tokengym/Forecast-v0",
    summary="One question, one probability, scored by a strictly proper rule.",
    entry_point="tokengym.envs.forecasting.world:ForecastWorld",
    render="tokengym.envs.forecasting.picture:render_episode",
    baselines="tokengym.envs.forecasting.baselines:BASELINES",
    roles=("forecaster",),
    turn_limits={name: level.turns for name, level in LEVELS.items()},
    step_range={"forecaster": UNIT},
    return_range={"forecaster": UNIT},
    metrics="tokengym.envs.forecasting.report:METRICS",
    demonstrations="tokengym.envs.forecasting.baselines:demonstrate",
    scores="tokengym.envs.forecasting.scores:forecast_scores",
    blind="tokengym.envs.forecasting.baselines:constants",
    best_blind="tokengym.envs.forecasting.baselines:best_constant",
    blind_name="best constant",
    reachable=dict.fromkeys(LEVELS, Reachable("oracle", "exact posterior", proved=True)),
    retired={
        "medium": "easy or hard",
        "ordered": "questions of your own with ordered outcomes (data=...)",
    },
    training={"label": "expected"},
    evaluation={"label": "outcome"},
    check_options={"label": "expected"},
    # One half earns 0.05 + 0.95 · 0.75 by the Brier score, whatever the label.
    flat_floor=FlatFloor(
        dyadic(0.05 + 0.95 * 0.75), 0.0, "a forecast worse than stating one half earns 0"
    ),
    calibration=("label", "probability"),
)
