"""Energy control with a safety floor: a home with a reserve or a heated house, a site."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.energy.levels import LEVELS
from tokengym.rewards.bounds import UNIT
from tokengym.rewards.control import SAFE_RETURN, FlatFloor

_SITES = tuple(name for name, level in LEVELS.items() if level.days)
_HOMES = tuple(name for name in LEVELS if name not in _SITES)

SPEC = WorldSpec(
    id="tokengym/Energy-v2",
    drawn_since=1,
    # Homes lost fields that no home had any more.
    revisions=dict.fromkeys(_HOMES, 1),
    summary="Run a battery, a heat pump or generators at least cost above a graded safety floor.",
    entry_point="tokengym.envs.energy.world:EnergyWorld",
    baselines="tokengym.envs.energy.baselines:BASELINES",
    roles=("operator",),
    violation="violation_depth",
    turn_limits={name: level.steps for name, level in LEVELS.items()},
    step_range={"operator": UNIT},
    return_range={"operator": UNIT},
    render="tokengym.envs.energy.picture:render_episode",
    metrics="tokengym.envs.energy.report:METRICS",
    scores="tokengym.envs.energy.report:indicator_scores",
    # The oracle's commands rest on weather that nobody is shown, and have twelve decimals.
    demonstrations="tokengym.envs.energy.baselines:mpc",
    blind="tokengym.envs.energy.blind:blind",
    paid_at_end=tuple(LEVELS),
    planners=("lagrangian", "mpc", "worst_day", "stochastic"),
    only_at={
        **dict.fromkeys(("self_consumption", "time_of_use", "worked", "backward"), _HOMES),
        "lagrangian": _HOMES,
        **dict.fromkeys(("cycle_charging", "merit_order", "worst_day"), _SITES),
    },
    reachable={
        **dict.fromkeys(
            _HOMES, Reachable("backward", "a backward pass on the forecasts", proved=False)
        ),
        "household": Reachable("mpc", "replanning on the forecasts as if certain", proved=False),
        **dict.fromkeys(
            _SITES, Reachable("stochastic", "DP over the listed days, on a grid", proved=False)
        ),
    },
    ladders="tokengym.envs.energy.ladders:LADDERS",
    flat_floor=FlatFloor(
        SAFE_RETURN, 0.0, "an episode that breaks the reserve earns 0", option=True
    ),
)
