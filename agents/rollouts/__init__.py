"""Saved rollouts: one record per rollout, in files that any table library reads.

The schema is documented in `docs/rollouts.md`; `selection` chooses among them and `formats` writes
them for other tools. Nothing here needs Tinker or torch.
"""

from tokengym.agents.rollouts.log import (
    RolloutLog,
    Segment,
    TrainRollouts,
    evaluation_segment,
    train_segment,
)
from tokengym.agents.rollouts.record import (
    REFUSED,
    SCHEMA_VERSION,
    RolloutOrigin,
    RolloutRecord,
    SampledTokens,
    TurnRecord,
    is_malformed,
    record_episode,
    record_play,
)
from tokengym.envs.core.episode import TurnExchange

__all__ = [
    "REFUSED",
    "SCHEMA_VERSION",
    "RolloutLog",
    "RolloutOrigin",
    "RolloutRecord",
    "SampledTokens",
    "Segment",
    "TrainRollouts",
    "TurnExchange",
    "TurnRecord",
    "evaluation_segment",
    "is_malformed",
    "record_episode",
    "record_play",
    "train_segment",
]
