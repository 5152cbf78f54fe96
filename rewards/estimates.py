"""A statistic with its 95 % confidence interval."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


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
        """Show value and half width: `0.812 ± 0.011`."""
        return f"{self.value:.3f} ± {(self.high - self.low) / 2:.3f}"


def mean_estimate(values: Sequence[float]) -> Estimate:
    """Return mean and Student-t 95 % interval of independent values; one value has no width."""
    count = len(values)
    if count == 0:
        return Estimate(math.nan, math.nan, math.nan)
    array = np.asarray(values, dtype=np.float64)
    mean = float(array.mean())
    if count == 1:
        return Estimate(mean, mean, mean, 1)
    from scipy.special import stdtrit  # it takes long to load, and only reports need it

    half = float(stdtrit(count - 1, 0.975)) * float(array.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, count)
