"""Reward ranges, and the dyadic grid that every reward is rounded to.

Rewards leave a world as multiples of 2⁻¹⁶. Sums and means of a few thousand such numbers are exact
in float32 and float64, so a group of equal rewards has an advantage of exactly zero.
"""

import math
from dataclasses import dataclass

GRID = 65536.0
"""Steps of the reward grid per unit: rewards are multiples of 1 / GRID."""


class RewardRangeError(ValueError):
    """A reward or return lies outside the range its world declares."""


@dataclass(frozen=True, slots=True)
class Range:
    """A closed interval of rewards, `low <= reward <= high`, both finite."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse an empty or unbounded interval."""
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise RewardRangeError(
                f"a range needs finite bounds with low <= high, got [{self.low}, {self.high}]"
            )

    def __contains__(self, value: float) -> bool:
        """Return whether `value` lies in the interval; NaN never does."""
        return self.low <= value <= self.high

    def require(self, value: float, what: str) -> float:
        """Return `value`, or raise `RewardRangeError` naming `what` and the range."""
        if self.low <= value <= self.high:
            return value
        raise RewardRangeError(f"{what} is {value!r}, outside its range [{self.low}, {self.high}]")


UNIT = Range(0.0, 1.0)
"""The reward range of most worlds."""


def dyadic(value: float) -> float:
    """Round `value` to the nearest multiple of 2⁻¹⁶ (ties to even).

    Raises:
        RewardRangeError: if `value` is NaN or infinite.
    """
    try:
        return round(value * GRID) / GRID
    except (OverflowError, ValueError):
        raise RewardRangeError(f"a reward must be finite, got {value!r}") from None
