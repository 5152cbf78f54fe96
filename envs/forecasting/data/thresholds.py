"""Numeric questions as thresholds: the number falls in one of the ranges between them.

The ranges are ordered outcomes. The ranked probability score of a forecast over them is the mean
Brier score of the yes/no questions whether the number is above each threshold.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from tokengym.envs.forecasting.data import fields
from tokengym.envs.forecasting.data.record import MOST_OUTCOMES, RowError
from tokengym.envs.intake.numbers import read_number
from tokengym.envs.intake.quoting import quoted

_SHARES = (0.2, 0.4, 0.6, 0.8)
_DIGITS = 3


def read_thresholds(value: object, name: str) -> tuple[float, ...]:
    """Return thresholds in ascending order.

    Raises:
        RowError: if they are no list of 1 to 25 ascending numbers.
    """
    value = fields.structured(value, name)
    items = value if isinstance(value, list) else []
    numbers = [number for number in map(read_number, items) if number is not None]
    ascending = all(low < high for low, high in pairwise(numbers))
    if not numbers or len(numbers) != len(items) or not ascending:
        raise RowError(f"{name!r} must list ascending numbers, got {quoted(value)}")
    if len(numbers) >= MOST_OUTCOMES:
        raise RowError(f"{name!r} must list 1 to {MOST_OUTCOMES - 1} numbers, got {len(numbers)}")
    return tuple(numbers)


def name_ranges(thresholds: Sequence[float], unit: str = "") -> tuple[str, ...]:
    """Return the names of the ranges, from the lowest: one more than there are thresholds."""
    written = [f"{number:.10g}{f' {unit}' if unit else ''}" for number in thresholds]
    between = (f"above {low}, at most {high}" for low, high in pairwise(written))
    return (f"at most {written[0]}", *between, f"above {written[-1]}")


def range_of(number: float, thresholds: Sequence[float]) -> int:
    """Return the index of the range that a number falls in."""
    return bisect_left(thresholds, number)


def number_at(share: float, low: float, high: float, ratio: float) -> float:
    """Return the number at a share of a question's span; see `spread_thresholds`."""
    part = share if ratio == 1.0 else (ratio**share - 1.0) / (ratio - 1.0)
    return low + (high - low) * part


def spread_thresholds(low: float, high: float, ratio: float = 1.0) -> tuple[float, ...]:
    """Return four thresholds that part the stated span of a question into fifths.

    Args:
        low: its lower end.
        high: its upper end, above it.
        ratio: how much steeper a logarithmic scale is at the upper end than at the lower; 1 for a
            linear scale.

    Raises:
        RowError: if the span is empty or too small to part.
    """
    if not low < high or not ratio > 0.0:
        raise RowError(f"the span of the question must ascend, got {low:g} to {high:g}")
    marks = (number_at(share, low, high, ratio) for share in _SHARES)
    thresholds = tuple(float(f"{mark:.{_DIGITS}g}") for mark in marks)
    if len(set(thresholds)) < len(thresholds):
        raise RowError(f"the span from {low:g} to {high:g} is too narrow for thresholds")
    return thresholds
