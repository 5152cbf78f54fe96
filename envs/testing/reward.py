"""`check_reward`: what a reward function of your own must keep, and how often it ties."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tokengym.envs.testing.generate import try_all
from tokengym.envs.testing.law import LawBroken, cut, told
from tokengym.envs.testing.strategies import replies
from tokengym.rewards.bounds import GRID, Range
from tokengym.rewards.ties import TieStatistics, tie_statistics

_GROUP = 8


@dataclass(frozen=True)
class RewardCheck:
    """What was observed of a reward function that kept its laws.

    Attributes:
        inputs: how many different inputs were scored.
        lowest: smallest value.
        highest: largest value.
        ties: how the values of different inputs tie, in groups of 8 as they came. Hypothesis looks
            for corner cases, where rewards tie more than among the replies of a policy.
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
    examples: int = 200,
    seed: int | None = None,
    **named: st.SearchStrategy[Any],
) -> RewardCheck:
    """Check a reward function: finite, within its range, and the same for the same input.

    Args:
        reward: from the arguments to a number.
        *arguments: a Hypothesis strategy for each positional argument; without any strategy it is
            called with one reply, hostile ones included.
        range: lowest and highest value, both allowed.
        dyadic: whether values are multiples of 2⁻¹⁶, as worlds pay them.
        slack: how far rounding may carry a value out of its range, >= 0.
        examples: how many inputs Hypothesis tries.
        seed: Hypothesis's seed, to repeat a run.
        **named: a strategy for each keyword argument.

    Raises:
        LawBroken: an AssertionError that begins with the law, and holds the arguments as far as
            Hypothesis could simplify them.
    """
    bounds = range if isinstance(range, Range) else Range(*range)
    if not arguments and not named:
        arguments = (replies(),)
    where = getattr(reward, "__qualname__", repr(reward))
    values: dict[str, float] = {}

    def check(given: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        written = ", ".join([*map(ascii, given), *(f"{k}={v!a}" for k, v in keywords.items())])

        def require(holds: bool, name: str, statement: str, detail: str) -> None:
            if not holds:
                raise LawBroken(name, statement, where, f"{cut(written, len(written))}: {detail}")

        try:
            value, again = float(reward(*given, **keywords)), float(reward(*given, **keywords))
        except Exception as error:
            require(False, "rewards_do_not_raise", "A reward raises no error.", told(error))
            raise
        finite, inside = math.isfinite(value), bounds.low - slack <= value <= bounds.high + slack
        require(finite, "rewards_are_finite", "A reward is finite.", f"{value!r}")
        require(
            value == again,
            "rewards_are_deterministic",
            "The same input earns the same reward.",
            f"{value!r}, then {again!r}",
        )
        require(
            inside,
            "rewards_lie_in_their_range",
            "A reward lies in its range.",
            f"{value!r} is not in [{bounds.low}, {bounds.high}]",
        )
        require(
            not dyadic or (value * GRID).is_integer(),
            "rewards_lie_on_the_grid",
            "A reward is a multiple of 2⁻¹⁶.",
            f"{value!r}",
        )
        values[written] = value

    inputs = st.tuples(*arguments), st.fixed_dictionaries(named)
    try_all(check, *inputs, examples=examples, seed=seed)
    found = list(values.values())
    return RewardCheck(len(found), min(found), max(found), tie_statistics(_groups(found)))


def _groups(values: list[float]) -> list[list[float]]:
    return [values[at : at + _GROUP] for at in range(0, len(values), _GROUP)]
