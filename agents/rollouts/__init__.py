"""Saved rollouts: one record per rollout, in files that any table library reads.

The schema is documented in `docs/rollouts.md`. Nothing here needs Tinker or torch.
"""

from tokengym.agents.rollouts.log import (
    RolloutLog,
    Segment,
    TrainRollouts,
    evaluation_segment,
    part_of,
    train_segment,
)
from tokengym.agents.rollouts.record import (
    REFUSED,
    SCHEMA_VERSION,
    RolloutOrigin,
    RolloutRecord,
    SampledTokens,
    TurnExchange,
    TurnRecord,
    is_malformed,
    record_episode,
    record_play,
)
from tokengym.agents.rollouts.selection import (
    Preference,
    RolloutSelection,
    best_of_groups,
    preferred,
)

__all__ = [
    "REFUSED",
    "SCHEMA_VERSION",
    "Preference",
    "RolloutLog",
    "RolloutOrigin",
    "RolloutRecord",
    "RolloutSelection",
    "SampledTokens",
    "Segment",
    "TrainRollouts",
    "TurnExchange",
    "TurnRecord",
    "best_of_groups",
    "evaluation_segment",
    "is_malformed",
    "part_of",
    "preferred",
    "record_episode",
    "record_play",
    "train_segment",
]
