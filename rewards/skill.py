"""Skill: 0 for the best input-independent baseline, 1 for the oracle, on the same Tasks."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokengym.rewards.arrays import Floats
from tokengym.rewards.estimates import Estimate, bootstrap_estimate

_DRAWS = 2000
_PICKS_AT_ONCE = 100_000
_COARSEST = 0.25
"""The largest half width of a skill that is stated as a number, in skill or as a share of it."""


def describe_skill(skill: Estimate) -> str:
    """Return a skill with its interval, or how many Tasks would measure it.

    A skill between .2 and 2 says nothing that a reader can use, whatever its digits.
    """
    if math.isnan(skill.value):
        return "undefined"
    coarsest = _COARSEST * max(1.0, abs(skill.value))
    if skill.half_width <= coarsest:
        return str(skill)
    return (
        f"{skill.low:.1f} to {skill.high:.1f} (too few Tasks; about "
        f"{skill.samples_for(coarsest):,} needed)"
    )


@dataclass(frozen=True)
class Yardstick:
    """Returns of the two ends of the scale on T Tasks.

    Attributes:
        blind_T: returns of the best policy that ignores the Task: skill 0.
        oracle_T: returns of the oracle: skill 1.
        blind_name: what the input-independent baseline does.

    Raises:
        ValueError: if there are no Tasks, or not as many returns of each.
    """

    blind_T: tuple[float, ...]
    oracle_T: tuple[float, ...]
    blind_name: str

    def __post_init__(self) -> None:
        """Refuse ends of different lengths."""
        if not self.blind_T or len(self.blind_T) != len(self.oracle_T):
            raise ValueError(
                "a yardstick needs returns of both ends on the same Tasks, got "
                f"{len(self.blind_T)} and {len(self.oracle_T)}"
            )

    def skill(self, returns_T: npt.ArrayLike, rng: np.random.Generator) -> Estimate:
        """Return (return - blind) / (oracle - blind), negative below the blind end of the scale.

        The interval is a bootstrap over Tasks, 95 %: each draw takes the three returns of a Task
        together, since what makes a Task hard makes it hard for all.

        Args:
            returns_T: the policy's returns on the same Tasks, shape (T,); NaN for a Task that was
                lost, which does not count.
            rng: draws the Tasks.

        Raises:
            ValueError: if there are not as many returns as Tasks.
        """
        return self._interval(np.stack([self._checked(returns_T)]), np.array([1.0]), 1.0, rng)

    def gain(
        self, after_T: npt.ArrayLike, before_T: npt.ArrayLike, rng: np.random.Generator
    ) -> Estimate:
        """Return the skill after less the skill before, paired by Task.

        Args:
            after_T: returns of the policy as it became, shape (T,).
            before_T: returns of the policy as it was, shape (T,).
            rng: draws the Tasks.

        Raises:
            ValueError: if there are not as many returns as Tasks.
        """
        both = np.stack([self._checked(after_T), self._checked(before_T)])
        return self._interval(both, np.array([1.0, -1.0]), 0.0, rng)

    def _checked(self, returns_T: npt.ArrayLike) -> Floats:
        checked_T = np.asarray(returns_T, np.float64)
        if checked_T.shape != (len(self.blind_T),):
            raise ValueError(f"expected {len(self.blind_T)} returns, got shape {checked_T.shape}")
        return checked_T

    def _interval(
        self, returns_KT: Floats, weights_K: Floats, blinds: float, rng: np.random.Generator
    ) -> Estimate:
        """Return the statistic Σ weight · return - blinds · blind, over oracle - blind."""
        blind_T, oracle_T = np.array(self.blind_T), np.array(self.oracle_T)
        above_T = weights_K @ returns_KT - blinds * blind_T
        known_T = ~np.isnan(above_T)
        above_T, span_T = above_T[known_T], (oracle_T - blind_T)[known_T]
        count = len(span_T)
        if count == 0:
            return Estimate(math.nan, math.nan, math.nan)
        value = _ratio(above_T.mean(), span_T.mean())
        # All draws at once would take gigabytes of 100,000 Tasks.
        rows = max(1, _PICKS_AT_ONCE // count)
        draws = []
        for first in range(0, _DRAWS, rows):
            picks_DT = rng.integers(count, size=(min(rows, _DRAWS - first), count))
            draws.append(_ratio(above_T[picks_DT].mean(axis=1), span_T[picks_DT].mean(axis=1)))
        draws_D = np.concatenate(draws)
        return bootstrap_estimate(float(value), draws_D[~np.isnan(draws_D)], count)


def _ratio(above: npt.ArrayLike, span: npt.ArrayLike) -> Floats:
    """Return above / span; NaN where the oracle is no better than the baseline."""
    above, span = np.asarray(above, np.float64), np.asarray(span, np.float64)
    ratio: Floats = np.divide(above, span, out=np.full(above.shape, np.nan), where=span > 0.0)
    return ratio
