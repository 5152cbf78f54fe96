"""Energy control with a safety floor: a microgrid with a reserve, and a heated house."""

from tokengym.envs.core.spec import Reachable, WorldSpec
from tokengym.envs.energy.levels import LEVELS
from tokengym.rewards.bounds import UNIT
from tokengym.rewards.control import SAFE_RETURN, FlatFloor

SPEC = WorldSpec(
    id="tokengym/Energy-v1",
    summary="Run a battery or a heat pump at least cost above a graded safety floor.",
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
    planners=("lagrangian", "mpc", "stochastic"),
    reachable={
        **dict.fromkeys(
            LEVELS, Reachable("mpc", "replanning on the forecasts as if certain", proved=False)
        ),
        "operations": Reachable("stochastic", "stochastic DP on the stated chances", proved=False),
    },
    ladders="tokengym.envs.energy.ladders:LADDERS",
    retired={"two_days": "day, or soma for more decisions"},
    flat_floor=FlatFloor(
        SAFE_RETURN, 0.0, "an episode that breaks the reserve earns 0", option=True
    ),
)
