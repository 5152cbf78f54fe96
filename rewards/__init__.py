"""The arithmetic of rewards; it imports numpy alone.

- Bounds: `Range`, `UNIT`, `dyadic` (the grid of 2⁻¹⁶), `RewardRangeError`.
- Proper scores of forecasts: `brier`, `log`, `spherical`; all by name in `SCORES`.
- Calibration: `reliability`, `murphy`, `corp`, `expected_error`, `auc`.
- Control around a safety floor: `control_score`, `bounded_score`, `violation_depth`,
  `floor_return`; `FlatFloor` to compare with.
- Debate, in `debate`: `correctness`, `reasoning`, `adaptation` and what a challenger earns.
- Ties within groups of rollouts: `tie_statistics`, `tie_counts`, `TieCounts`.
- Advantages: `group_centred`, `group_standardised`, `leave_one_out`, `reinforce_plus_plus`,
  `remax`, `turn_centred`; `returns_to_go`, `informative_groups`.
"""

from tokengym.rewards import debate
from tokengym.rewards.advantages import (
    group_centred,
    group_standardised,
    informative_groups,
    leave_one_out,
    reinforce_plus_plus,
    remax,
    returns_to_go,
    turn_centred,
)
from tokengym.rewards.bounds import UNIT, Range, RewardRangeError, dyadic
from tokengym.rewards.calibration import auc, corp, expected_error, murphy, reliability
from tokengym.rewards.control import (
    FlatFloor,
    bounded_score,
    control_score,
    floor_return,
    violation_depth,
)
from tokengym.rewards.scoring import SCORES, brier, log, spherical
from tokengym.rewards.ties import TieCounts, tie_counts, tie_statistics

__all__ = [
    "SCORES",
    "UNIT",
    "FlatFloor",
    "Range",
    "RewardRangeError",
    "TieCounts",
    "auc",
    "bounded_score",
    "brier",
    "control_score",
    "corp",
    "debate",
    "dyadic",
    "expected_error",
    "floor_return",
    "group_centred",
    "group_standardised",
    "informative_groups",
    "leave_one_out",
    "log",
    "murphy",
    "reinforce_plus_plus",
    "reliability",
    "remax",
    "returns_to_go",
    "spherical",
    "tie_counts",
    "tie_statistics",
    "turn_centred",
    "violation_depth",
]
