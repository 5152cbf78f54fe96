"""The arithmetic of rewards; it imports numpy alone.

- Bounds: `Range`, `UNIT`, `dyadic` (the grid of 2⁻¹⁶), `RewardRangeError`.
- Proper scores of forecasts: `brier`, `log`, `spherical`; all by name in `SCORES`.
- Estimates: `Estimate`, a statistic with its 95 % interval; `mean_estimate`, `share_estimate`.
- Calibration of forecasts: `reliability`, `murphy`, `corp`, `consistency_band`, `expected_error`,
  `auc`.
- Control around a safety floor: `control_score`, `bounded_score`, `violation_depth`,
  `floor_return`; `FlatFloor` to compare with.
- Debate, in `debate`: `correctness`, `reasoning`, `adaptation` and what a challenger earns.
- Ties within groups of rollouts: `tie_statistics`, `tie_counts`, `TieCounts`.
- Advantages: `group_centred`, `group_standardised`, `leave_one_out`, `reinforce_plus_plus`,
  `remax`; `returns_to_go` and `by_turn` for credit by turn; `informative_groups`.
"""

from tokengym.rewards import debate
from tokengym.rewards.advantages import (
    by_turn,
    group_centred,
    group_standardised,
    informative_groups,
    leave_one_out,
    reinforce_plus_plus,
    remax,
    returns_to_go,
)
from tokengym.rewards.bounds import UNIT, Range, RewardRangeError, dyadic
from tokengym.rewards.calibration import (
    auc,
    consistency_band,
    corp,
    expected_error,
    murphy,
    reliability,
)
from tokengym.rewards.control import (
    FlatFloor,
    bounded_score,
    control_score,
    floor_return,
    violation_depth,
)
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate
from tokengym.rewards.scoring import SCORES, brier, log, spherical
from tokengym.rewards.ties import TieCounts, tie_counts, tie_statistics

__all__ = [
    "SCORES",
    "UNIT",
    "Estimate",
    "FlatFloor",
    "Range",
    "RewardRangeError",
    "TieCounts",
    "auc",
    "bounded_score",
    "brier",
    "by_turn",
    "consistency_band",
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
    "mean_estimate",
    "murphy",
    "reinforce_plus_plus",
    "reliability",
    "remax",
    "returns_to_go",
    "share_estimate",
    "spherical",
    "tie_counts",
    "tie_statistics",
    "violation_depth",
]
