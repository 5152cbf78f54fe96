"""Forecast-v1: one question, one probability, scored by a strictly proper rule."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.forecasting.levels import LEVELS
from tokengym.rewards.bounds import UNIT, Range, dyadic
from tokengym.rewards.control import FlatFloor

_DESKS = tuple(name for name, level in LEVELS.items() if level.desk)
_PLANNERS = ("fixed_set", "two_steps", "three_steps")

SPEC = WorldSpec(
    id="tokengym/Forecast-v1",
    drawn_since=0,
    summary="One question, one probability, scored by a strictly proper rule.",
    entry_point="tokengym.envs.forecasting.world:ForecastWorld",
    render="tokengym.envs.forecasting.picture:render_episode",
    baselines="tokengym.envs.forecasting.baselines:BASELINES",
    roles=("forecaster",),
    level_entry_points=dict.fromkeys(_DESKS, "tokengym.envs.forecasting.desk_world:DeskWorld"),
    turn_limits={name: level.turns for name, level in LEVELS.items()},
    # A look costs at once; what was spent is paid back to those who never answer, with no more.
    step_range={"forecaster": Range(-0.0625, 1.0)},
    return_range={"forecaster": UNIT},
    metrics="tokengym.envs.forecasting.report:METRICS",
    demonstrations="tokengym.envs.forecasting.baselines:demonstrate",
    scores="tokengym.envs.forecasting.scores:forecast_scores",
    blind="tokengym.envs.forecasting.baselines:constants",
    best_blind="tokengym.envs.forecasting.baselines:best_constant",
    only_at=dict.fromkeys(
        ("read_all", "per_price", "threshold", "report_and_keys", *_PLANNERS), _DESKS
    ),
    paid_at_end=tuple(name for name, level in LEVELS.items() if level.turns == 1),
    planners=("likeliest", *_PLANNERS),
    reachable={
        name: Reachable("oracle", "exact DP" if level.desk else "exact posterior", proved=True)
        for name, level in LEVELS.items()
    },
    ladders="tokengym.envs.forecasting.ladders:LADDERS",
    training={"label": "expected"},
    evaluation={"label": "outcome"},
    check_options={"label": "expected"},
    # One half earns 0.05 + 0.95 · 0.75 by the Brier score, whatever the label.
    flat_floor=FlatFloor(
        dyadic(0.05 + 0.95 * 0.75), 0.0, "a forecast worse than stating one half earns 0"
    ),
    calibration=("label", "probability"),
)
