"""The memory test: digits are shown, and recalled after turns of distraction."""

from tokengym import WorldSpec
from tokengym.rewards import UNIT

SPEC = WorldSpec(
    id="acme/Recall-v0",
    summary="Recall digits after turns of distraction.",
    entry_point="tokengym_recall.world:RecallWorld",
    baselines="tokengym_recall.baselines:BASELINES",
    roles=("memory",),
    # Digits are shown in the first turn and asked for in the last.
    turn_limits={"one": 3, "four": 6},
    step_range={"memory": UNIT},
    return_range={"memory": UNIT},
    evaluation={"bits": "many"},
)
