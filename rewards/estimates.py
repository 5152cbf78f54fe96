"""A statistic with its 95 % confidence interval."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tokengym.rewards.arrays import Floats

_ROUNDING = 1e-12
"""Values no further apart, relatively, agree."""
_SYMMETRIC = 1e-6
"""Sides of an interval no further apart, relatively, are equal but for rounding."""
_SHARE_OF_SHOWN = 1.96 / (1.96 + 0.84)


class Estimate(NamedTuple):
    """A statistic with its 95 % confidence interval.

    Attributes:
        value: the statistic; NaN of no values.
        low: lower end of the interval.
        high: upper end of the interval.
        samples: how many independent values it rests on; 0 where that is not recorded.
    """

    value: float
    low: float
    high: float
    samples: int = 0

    def __str__(self) -> str:
        """Show value and interval: `0.812 ± 0.011`, or `0.812 (0.805 to 0.831)` if lopsided."""
        return f"{self.value:.3f} {self.around}".rstrip()

    @property
    def shown(self) -> str:
        """Value and interval: `0.812 (0.801 to 0.823)`."""
        interval = self.interval()
        return f"{self.value:.3f}{f' ({interval})' if interval else ''}"

    @property
    def around(self) -> str:
        """The interval behind the value: ± its half width, or both ends if these differ."""
        below, above = self.value - self.low, self.high - self.value
        if below > 0.0 and math.isclose(below, above, rel_tol=_SYMMETRIC):
            return f"± {self.half_width:.3f}"
        return f"({interval})" if (interval := self.interval()) else ""

    @property
    def rest(self) -> "Estimate":
        """The complement of a share, 1 less the value, with its interval."""
        return Estimate(1.0 - self.value, 1.0 - self.high, 1.0 - self.low, self.samples)

    def interval(self, shown: Callable[[float], str] = "{:.3f}".format) -> str:
        """Return the interval in words: its ends, or, without a width, how many values agree."""
        if self.low == self.high:
            return f"all {self.samples:,} equal" if self.samples > 1 else ""
        return f"{shown(self.low)} to {shown(self.high)}"

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2

    def samples_for(self, half_width: float) -> int:
        """Return about how many values would give an interval of that half width.

        Rounded up to two digits: an interval that is too wide is not known better.
        """
        needed = self.samples * (self.half_width / half_width) ** 2
        if not 0.0 < needed < math.inf:
            return self.samples
        unit = 10.0 ** max(math.floor(math.log10(needed)) - 1, 0)
        return int(math.ceil(needed / unit) * unit)

    def samples_to_show(self) -> int:
        """Return about how many values would show that a mean of this size is not 0.

        They do so in four of five cases: an interval's half width is 1.96 standard errors, and the
        mean must be 1.96 + 0.84 of them away from 0.
        """
        return self.samples_for(_SHARE_OF_SHOWN * abs(self.value)) if self.value else self.samples


def bootstrap_estimate(value: float, draws: Floats, samples: int) -> Estimate:
    """Return a statistic with the middle 95 % of its bootstrap draws; NaN where none is defined.

    Args:
        value: the statistic.
        draws: the statistic of each resample, shape (D,).
        samples: how many independent values it rests on.
    """
    low, high = np.quantile(draws, (0.025, 0.975)).tolist() if draws.size else (math.nan, math.nan)
    return Estimate(value, low, high, samples)


def mean_estimate(values: Sequence[float], bounds: tuple[float, float] | None = None) -> Estimate:
    """Return mean and Student-t 95 % interval of independent values; one value has no width.

    Args:
        values: the values.
        bounds: the smallest and the largest value possible, if known. Where all n values agree,
            the interval then allows for other values at the bounds, of the largest share that
            Clopper and Pearson (1934) give for none seen among n.
    """
    count = len(values)
    if count == 0:
        return Estimate(math.nan, math.nan, math.nan)
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if np.ptp(array) <= _ROUNDING * max(abs(mean), 1.0):
        unseen = 0.0 if bounds is None else share_estimate(0, count).high
        low, high = (mean + unseen * (bound - mean) for bound in bounds or (mean, mean))
        return Estimate(mean, min(low, mean), max(high, mean), count)
    from scipy.special import stdtrit  # it takes long to load, and only reports need it

    half = float(stdtrit(count - 1, 0.975)) * float(array.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)


def share_estimate(count: float, total: float, level: float = 0.95) -> Estimate:
    """Return a share with the interval of Clopper and Pearson (1934), which has a width at 0 and 1.

    A mean of independent values in [0, 1] varies no more than a share of the same size, so that
    their sum may stand for the count; the interval is then wider than necessary.

    Args:
        count: successes, or a sum of values in [0, 1]; between 0 and `total`.
        total: trials, at least 0; of none the share is NaN.
        level: coverage, in (0, 1).

    Raises:
        ValueError: if the count is not between 0 and the total.
    """
    if not 0 <= count <= total:
        raise ValueError(f"a count lies between 0 and its total, got {count!r} of {total!r}")
    if total == 0:
        return Estimate(math.nan, math.nan, math.nan)
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = float(betaincinv(count, total - count + 1, tail)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1.0 - tail)) if count < total else 1.0
    return Estimate(count / total, low, high, int(total))
