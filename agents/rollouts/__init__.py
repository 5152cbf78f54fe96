"""Saved rollouts: one record per rollout, in files that any table library reads.

The schema is documented in `docs/rollouts.md`; `selection` chooses among them and `formats` writes
them for other tools. Nothing here needs Tinker or torch.
"""

from tokengym.agents.rollouts.log import (
    RolloutLog,
    TrainRollouts,
    evaluation_segment,
    train_segment,
)
from tokengym.agents.rollouts.record import (
    RolloutOrigin,
    RolloutRecord,
    SampledTokens,
    TurnRecord,
    record_episode,
    record_play,
)

__all__ = [
    "RolloutLog",
    "RolloutOrigin",
    "RolloutRecord",
    "SampledTokens",
    "TrainRollouts",
    "TurnRecord",
    "evaluation_segment",
    "record_episode",
    "record_play",
    "train_segment",
]
