"""`check_reward`: the laws of a reward function, on one of your own, and how often it ties."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from hypothesis import strategies as st

from tokengym.envs.testing.generate import try_all
from tokengym.envs.testing.law import LawBroken, cut, describe
from tokengym.envs.testing.strategies import replies
from tokengym.rewards.bounds import GRID, Range
from tokengym.rewards.ties import TieStatistics, tie_statistics

_GROUP = 8


class RewardLaw(Enum):
    """Laws of every reward function."""

    REWARDS_DO_NOT_RAISE = "A reward function raises no error."
    REWARDS_ARE_FINITE = "A reward is finite."
    REWARDS_ARE_DETERMINISTIC = "Equal inputs earn equal rewards."
    REWARDS_LIE_IN_THEIR_RANGE = "A reward lies in its range."
    REWARDS_LIE_ON_THE_GRID = "A reward is a multiple of 2⁻¹⁶."
    REWARDS_DIFFER = "Different inputs seldom earn the same."


@dataclass(frozen=True)
class RewardCheck:
    """Observations of a reward function that passed its laws.

    Attributes:
        inputs: number of different inputs.
        lowest: smallest reward.
        highest: largest reward.
        ties: how often different inputs tie, in groups of 8 in order of generation. Hypothesis
            seeks corner cases, where rewards tie more often than for the replies of a policy.
    """

    inputs: int
    lowest: float
    highest: float
    ties: TieStatistics


def check_reward(
    reward: Callable[..., Any],
    *arguments: st.SearchStrategy[Any],
    range: Range | tuple[float, float],
    dyadic: bool = False,
    slack: float = 0.0,
    ties: float = 0.99,
    examples: int = 200,
    seed: int | None = None,
    **named: st.SearchStrategy[Any],
) -> RewardCheck:
    """Check that a reward function is deterministic, finite, within its range, and tells apart.

    Args:
        reward: the function; it returns a number.
        *arguments: a Hypothesis strategy for each positional argument. Without any strategy, the
            function is called with one reply, hostile ones included.
        range: smallest and largest reward allowed.
        dyadic: whether rewards must be multiples of 2⁻¹⁶, as worlds pay them.
        slack: how far rounding may carry a reward out of its range, >= 0.
        ties: largest share of pairs of inputs that may earn the same; 1 for any.
        examples: number of inputs that Hypothesis generates.
        seed: makes the check repeatable; with `None` the inputs differ each time.
        **named: a strategy for each keyword argument.

    Raises:
        LawBroken: an AssertionError that has the law and the simplest arguments that break it.
    """
    bounds = range if isinstance(range, Range) else Range(*range)
    if not arguments and not named:
        arguments = (replies(),)
    values: dict[str, float] = {}

    def require(law: RewardLaw, holds: bool, detail: str) -> None:
        if not holds:
            where = getattr(reward, "__qualname__", repr(reward))
            raise LawBroken(law.name.lower(), law.value, where, detail)

    def check(inputs: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        call = ", ".join([*map(ascii, inputs), *(f"{k}={v!a}" for k, v in keywords.items())])
        said = cut(call, len(call))
        try:
            value, again = float(reward(*inputs, **keywords)), float(reward(*inputs, **keywords))
        except Exception as error:
            require(RewardLaw.REWARDS_DO_NOT_RAISE, False, f"{said}: {describe(error)}")
            raise
        require(RewardLaw.REWARDS_ARE_FINITE, math.isfinite(value), f"{said}: {value!r}")
        differ = f"{said}: {value!r}, then {again!r}"
        require(RewardLaw.REWARDS_ARE_DETERMINISTIC, value == again, differ)
        require(
            RewardLaw.REWARDS_LIE_IN_THEIR_RANGE,
            bounds.low - slack <= value <= bounds.high + slack,
            f"{said}: {value!r} is not in [{bounds.low}, {bounds.high}]",
        )
        on_grid = not dyadic or (value * GRID).is_integer()
        require(RewardLaw.REWARDS_LIE_ON_THE_GRID, on_grid, f"{said}: {value!r}")
        values[call] = value

    generated = st.tuples(*arguments), st.fixed_dictionaries(named)
    try_all(check, *generated, examples=examples, seed=seed)
    rewards = list(values.values())
    found = tie_statistics(_groups(rewards))
    tied = found["reward_tie_pair_rate"] if len(rewards) > 1 else 0.0
    among = f"{tied:.0%} of the pairs of {len(rewards)} inputs earn the same, {ties:.0%} may"
    require(RewardLaw.REWARDS_DIFFER, tied <= ties, among)
    return RewardCheck(len(rewards), min(rewards), max(rewards), found)


def _groups(values: list[float]) -> list[list[float]]:
    return [values[at : at + _GROUP] for at in range(0, len(values), _GROUP)]
