"""Scales of levels: what named policies earn, skill from blind to oracle, and the ladder of rungs.

Training, evaluation, adapters and reports read it; `level_scale` has the scale, `ladder` the rungs.
"""

from tokengym.agents.scale.level_scale import (
    FILE,
    TASKS,
    Earned,
    Ends,
    Scale,
    ShippedScale,
    best_blind,
    best_known,
    blind_label,
    blind_policies,
    find_blind,
    ladder_of,
    level_ends,
    scripted_opponents,
    shipped_rows,
    shipped_scale,
    skill_gain,
    skill_of,
)

__all__ = [
    "FILE",
    "TASKS",
    "Earned",
    "Ends",
    "Scale",
    "ShippedScale",
    "best_blind",
    "best_known",
    "blind_label",
    "blind_policies",
    "find_blind",
    "ladder_of",
    "level_ends",
    "scripted_opponents",
    "shipped_rows",
    "shipped_scale",
    "skill_gain",
    "skill_of",
]
