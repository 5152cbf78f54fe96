"""Scores for control worlds, relative to a reference policy and an optimum, with a safety floor.

Returns are graded below the floor as above it, violations by their depth and safe episodes by their
cost, so that two different episodes hardly ever tie.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokengym.rewards.arrays import Flags, Floats
from tokengym.rewards.bounds import GRID, dyadic
from tokengym.rewards.form import FORM_SHARE

FLOOR = 0.2
"""The safety floor: violations are worth less than this, safe episodes at least this."""
AFFINE_FROM = -1.5
"""The score down to which the value of a safe episode is affine in its cost."""
_AT_ITS_END = 0.1
"""Value of `affine_score` there."""


def control_score(objective: float, reference: float, optimum: float) -> float:
    """Normalise an objective, s = (J - J_ref) / (J* - J_ref): 0 at the reference, 1 at the optimum.

    Args:
        objective: what was achieved, higher is better (negate a cost).
        reference: what the world's reference policy achieves.
        optimum: the best there is, or a proved bound of it.

    Raises:
        ValueError: if a number is not finite or the optimum does not exceed the reference.
    """
    if not (math.isfinite(objective) and math.isfinite(reference) and math.isfinite(optimum)):
        raise ValueError(
            f"a control score needs finite numbers, got objective={objective!r}, "
            f"reference={reference!r}, optimum={optimum!r}"
        )
    if optimum <= reference:
        raise ValueError(f"the optimum must exceed the reference, got {optimum!r} <= {reference!r}")
    return (objective - reference) / (optimum - reference)


def bounded_score(score: float) -> float:
    """Map a score into [0, 1]: h(s) = 1/4 + 3/4 min(s, 1) for s >= 0, 1/4 exp(s) below.

    Continuous and never flat below 1, down to where exp(s) underflows (s about -745).
    """
    return 0.25 + 0.75 * min(score, 1.0) if score >= 0.0 else 0.25 * math.exp(score)


def cost_score(cost: float, reference: float, scale: float) -> float:
    """Score a cost, s = 1 - (cost - reference) / scale: 1 at the reference, 1 less per `scale`.

    Where the scale is known before a Task turns out one way or another, and only the reference is
    not, the expected score is affine in the expected cost.

    Args:
        cost: what was paid.
        reference: what the reference plan paid in the same outcome.
        scale: money per unit of the score.

    Raises:
        ValueError: if a number is not finite or the scale not positive.
    """
    if not (math.isfinite(cost) and math.isfinite(reference) and 0.0 < scale < math.inf):
        raise ValueError(
            f"a score of a cost needs finite numbers and a scale above 0, got {cost=}, "
            f"{reference=} and {scale=}"
        )
    return 1.0 - (cost - reference) / scale


def affine_score(score: float, most: float = 1.0) -> float:
    """Map a score into [0, 1], affine from `AFFINE_FROM` to `most`, where it is 1 and capped.

    Below that it goes to 0 exponentially, with the same slope where they meet. So of two policies
    whose scores stay in the affine range, the one with the lower expected score never earns more.
    """
    above = min(score, most) - AFFINE_FROM
    slope = (1.0 - _AT_ITS_END) / (most - AFFINE_FROM)
    if above >= 0.0:
        return _AT_ITS_END + slope * above
    return _AT_ITS_END * math.exp(slope / _AT_ITS_END * above)


def violation_depth(costs: Sequence[float], largest: float, total: float) -> float:
    """Grade violations, v = min(1, max(c)/(2 max(R)) + sum(c)/(2 sum(R))): 0 for none, 1 at most.

    Args:
        costs: safety cost c_t >= 0 of every step.
        largest: largest requirement of a step, max(R) > 0.
        total: sum of the requirements of all steps, sum(R) > 0.

    Raises:
        ValueError: if a requirement is not positive.
    """
    if largest <= 0.0 or total <= 0.0:
        raise ValueError(f"requirements must be positive, got {largest=} and {total=}")
    return min(1.0, 0.5 * max(costs, default=0.0) / largest + 0.5 * sum(costs) / total)


def floor_return(score: float, depth: float | None, most: float = 1.0) -> float:
    """Compute an episode's value under the safety floor, a multiple of 2⁻¹⁶ in [0, 1].

    Safe episodes earn FLOOR + (1 - FLOOR) h(s), h being `affine_score`, violations FLOOR (1 - v).
    Rounding to the grid moves no episode across the floor: violations stay strictly below it, safe
    episodes never do.

    Args:
        score: s of the episode, see `cost_score`; not used for a violation.
        depth: v of the violation in [0, 1], or `None` for a safe episode.
        most: the score from which a safe episode earns 1.

    Raises:
        ValueError: if `depth` is outside [0, 1].
    """
    if depth is None:
        return max(dyadic(FLOOR + (1.0 - FLOOR) * affine_score(score, most)), _FIRST_SAFE)
    if not 0.0 <= depth <= 1.0:
        raise ValueError(f"the depth of a violation lies in [0, 1], got {depth!r}")
    return min(dyadic(FLOOR * (1.0 - depth)), _LAST_VIOLATION)


@dataclass(frozen=True)
class FlatFloor:
    """A flat floor to compare graded rewards with: all episodes below a threshold earn the same.

    Where the world has an option `flat_floor`, `flattened` gives the returns under that option if
    it is called with the episodes that fell: the threshold alone does not tell, since malformed
    replies lower the returns of others too. Elsewhere it gives the returns of the same rollouts if
    everything short of a plain reference earned the same, as under many common rewards.

    Attributes:
        below: episodes that earn less than this fall to the floor.
        pays: what they earn there.
        what: description of the episodes that fall.
        option: whether the world has it as its own option `flat_floor`.
    """

    below: float
    pays: float
    what: str
    option: bool = False

    def flattened(self, rewards: Floats, fallen: Flags | None = None) -> Floats:
        """Replace the graded returns of episodes that fall, in an array of any shape.

        Args:
            rewards: graded returns.
            fallen: which episodes fall, of the same shape; those below the threshold if `None`.
        """
        return np.where(rewards < self.below if fallen is None else fallen, self.pays, rewards)


_FIRST_SAFE = math.ceil(FLOOR * GRID) / GRID
_LAST_VIOLATION = (math.ceil(FLOOR * GRID) - 1) / GRID

SAFE_RETURN = dyadic((1.0 - FORM_SHARE) * _FIRST_SAFE) + dyadic(FORM_SHARE)
"""Least return, form included, of a safe episode without malformed replies, about 0.24. Violations
return less."""
