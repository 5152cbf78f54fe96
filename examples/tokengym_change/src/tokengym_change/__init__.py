"""The world of change: pay an amount with few coins."""

from tokengym import WorldSpec
from tokengym.rewards import UNIT

SPEC = WorldSpec(
    id="acme/Change-v0",
    summary="Pay an amount with as few coins as possible.",
    entry_point="tokengym_change.world:ChangeWorld",
    baselines="tokengym_change.baselines:BASELINES",
    roles=("cashier",),
    turn_limits={"small": 1},
    step_range={"cashier": UNIT},
    return_range={"cashier": UNIT},
)
