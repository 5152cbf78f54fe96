"""The meaning of the numbers that a world reports at the end of an episode."""

from typing import NamedTuple


class Metric(NamedTuple):
    """One number of `Turn.metrics` at the end of an episode, for people.

    Attributes:
        title: what to call it.
        unit: unit of `scale` times the number; empty for a plain number.
        meaning: one line on what it says and which way is better.
        share: whether its mean is a share, namely of the episodes that report it.
        scale: what the number is multiplied by where it is shown.
    """

    title: str
    unit: str
    meaning: str
    share: bool = False
    scale: float = 1.0
