"""The arithmetic of rewards; it imports numpy alone.

- Bounds: `Range`, `UNIT`, `dyadic` (the grid of 2⁻¹⁶), `RewardRangeError`.
- Proper scores of forecasts: `brier`, `log`, `spherical`, by name in `SCORES`; of outcomes in order
  `ranked`, `ranked_upper`, by name in `ORDERED_SCORES`.
- Estimates: `Estimate`, a statistic with its 95 % interval; `mean_estimate`, `share_estimate`.
- Calibration of forecasts: `reliability`, `murphy`, `corp`, `consistency_band`, `expected_error`,
  `auc`; `verify_forecasts` for all that is published of a set, with intervals over events.
- Control around a safety floor: `control_score`, `bounded_score`, `cost_score`,
  `affine_score`, `violation_depth`, `floor_return`; `FlatFloor` to compare with.
- Debate, in `debate`: `correctness`, `calibration`, `consistency`, `reasoning`, `false_claims` of
  our reward, `original` for the terms as first described, and what a challenger earns.
- Ties within groups of rollouts: `tie_statistics`, `tie_counts`, `TieCounts`.
- Advantages: `group_centred`, `group_standardised`, `leave_one_out`, `reinforce_plus_plus`,
  `remax`; `returns_to_go` and `by_turn` for credit by turn; `informative_groups`.
"""

if __name__ != "tokengym.rewards":
    raise ImportError("import tokengym.rewards: the bare name would load each module a second time")

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
    affine_score,
    bounded_score,
    control_score,
    cost_score,
    floor_return,
    violation_depth,
)
from tokengym.rewards.estimates import Estimate, mean_estimate, share_estimate
from tokengym.rewards.scoring import (
    ORDERED_SCORES,
    SCORES,
    brier,
    log,
    ranked,
    ranked_upper,
    spherical,
)
from tokengym.rewards.ties import TieCounts, tie_counts, tie_statistics
from tokengym.rewards.verification import Verification, verify_forecasts

__all__ = [
    "ORDERED_SCORES",
    "SCORES",
    "UNIT",
    "Estimate",
    "FlatFloor",
    "Range",
    "RewardRangeError",
    "TieCounts",
    "Verification",
    "affine_score",
    "auc",
    "bounded_score",
    "brier",
    "by_turn",
    "consistency_band",
    "control_score",
    "corp",
    "cost_score",
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
    "ranked",
    "ranked_upper",
    "reinforce_plus_plus",
    "reliability",
    "remax",
    "returns_to_go",
    "share_estimate",
    "spherical",
    "tie_counts",
    "tie_statistics",
    "verify_forecasts",
    "violation_depth",
]
