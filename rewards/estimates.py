"""A statistic with its 95 % confidence interval."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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


def bootstrap_estimate(value: float, draws: Floats, samples: int) -> Estimate:
    """Return a statistic with the middle 95 % of its bootstrap draws; NaN where none is defined.

    Args:
        value: the statistic.
        draws: the statistic of each resample, shape (D,).
        samples: how many independent values it rests on.
    """
    low, high = np.quantile(draws, (0.025, 0.975)).tolist() if draws.size else (math.nan, math.nan)
    return Estimate(value, low, high, samples)


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


def share_estimate(count: float, total: int, level: float = 0.95) -> Estimate:
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
    return Estimate(count / total, low, high, total)
