"""Which groups have a signal, why others have none, and how many to roll out in addition.

Decisions are about whole groups and never about an estimator's deviations: a leave-one-out
deviation calls the one rollout that differs from its siblings uninformative, and deviations of
equal rewards are rounding noise.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from tokengym.rewards.advantages import MINIMUM_SPREAD
from tokengym.rewards.arrays import Floats
from tokengym.rewards.bounds import Range


class GroupSignal(StrEnum):
    """Whether a group has a signal, and why not."""

    LIVE = "live"
    """The compared values spread by more than the resolution."""
    TIE = "tie"
    """All of it ties: spread at most `MINIMUM_SPREAD`."""
    RESOLUTION = "resolution"
    """It differs, but by no more than the resolution: noise that standardising would blow up."""


def judge(spread_N: Floats, min_spread: float) -> list[GroupSignal]:
    """Return the verdict on each group.

    Args:
        spread_N: largest less smallest of what is compared in each group, shape (N,); 0 where
            nothing is.
        min_spread: largest spread that counts as none.
    """
    dead_N = spread_N <= min_spread
    tie_N = spread_N <= MINIMUM_SPREAD
    return [
        (GroupSignal.TIE if tie else GroupSignal.RESOLUTION) if dead else GroupSignal.LIVE
        for dead, tie in zip(dead_N.tolist(), tie_N.tolist(), strict=True)
    ]


def further_groups(missing: int, budget: int, spent: int, most_expensive: int) -> int:
    """Return how many groups to roll out next instead of dead ones.

    As long as no group costs more than `most_expensive`, what is spent never exceeds the budget.

    Args:
        missing: live groups the batch lacks.
        budget: most tokens that may be spent on further groups.
        spent: tokens spent on them so far.
        most_expensive: tokens of the most_expensive group so far.
    """
    left = max(0, budget - spent)
    return min(missing, left // most_expensive) if most_expensive > 0 else missing


def counts(verdicts: Sequence[GroupSignal]) -> dict[str, float]:
    """Return the number of groups of each verdict, all verdicts named."""
    numbers = Counter(verdicts)
    return {verdict.value: float(numbers[verdict]) for verdict in GroupSignal}


def tie_levels(verdict: GroupSignal, mean_return: float, range_: Range) -> dict[str, int]:
    """Return where a group ties, as counts: at the world's lowest return, the highest, or between.

    Args:
        verdict: on the group.
        mean_return: of its rollouts.
        range_: of returns.
    """
    tied = verdict is GroupSignal.TIE
    lowest = tied and mean_return <= range_.low + MINIMUM_SPREAD
    highest = tied and not lowest and mean_return >= range_.high - MINIMUM_SPREAD
    between = tied and not lowest and not highest
    return {"tie_lowest": lowest, "tie_highest": highest, "tie_between": between}
