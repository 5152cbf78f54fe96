"""How likely chance explains a mean of bounded returns."""

import math
from collections.abc import Mapping

from tokengym.rewards.arrays import Floats
from tokengym.rewards.bounds import GRID, Range

_CHANCE = 1e-4
"""Probability below which an event does not count as chance."""


def chance_of_mean(observed: float, expected: float, bounds: Range, count: int) -> float:
    """Bound the chance that independent returns have so large a mean; Hoeffding (1963).

    Standard errors would not do: of lotteries that hardly ever lose, a sample without a loss has a
    small one.

    Args:
        observed: the mean of the returns.
        expected: the mean of what they are expected to be, at most; `observed` is no less.
        bounds: the range of every return.
        count: how many returns there are.

    Returns:
        the Chernoff bound exp(-n·KL(observed ‖ expected)) of the returns scaled to [0, 1]; 0 where
        `expected` is at or outside an end of the range, since then nothing is left to chance.
    """
    span = bounds.high - bounds.low
    share = min((observed - bounds.low) / span, 1.0)
    least = (expected - bounds.low) / span
    if not 0.0 < least < 1.0:
        return 0.0
    exponent = share * math.log(share / least)
    if share < 1.0:
        exponent += (1.0 - share) * math.log((1.0 - share) / (1.0 - least))
    return math.exp(-count * max(0.0, exponent))  # rounding may leave it just below 0


def against_optimum(
    earned_T: Mapping[str, Floats], limit_T: Floats, bounds: Range, turns: int, *, exact: bool
) -> str:
    """Compare what policies earn with the optimum that is stated, beyond chance and rounding.

    Where the oracle earns the optimum on every Task, Tasks are compared one by one, else means.

    Args:
        earned_T: by policy, among them perhaps `oracle`, its return on each Task, shape (T,).
        limit_T: the optimum of each Task, or a bound of it, shape (T,).
        bounds: the declared range of returns.
        turns: most replies of an episode; each is rounded to the grid.
        exact: whether it is the optimum of every Task, which the oracle then has to attain.

    Returns:
        what is wrong; empty if nothing is.
    """
    slack, most = turns / GRID, float(limit_T.mean())
    oracle_T = earned_T.get("oracle")
    certain = oracle_T is not None and bool((abs(oracle_T - limit_T) <= slack).all())
    for name, values_T in earned_T.items():
        excess_T = values_T - limit_T
        if certain and excess_T.max() > slack:
            return f"{name} earns {excess_T.max():.6f} more than the optimum of a Task"
        if (
            excess_T.mean() > slack
            and chance_of_mean(float(values_T.mean()), most, bounds, len(values_T)) < _CHANCE
        ):
            return f"{name} earns {excess_T.mean():.4f} more than the mean optimum"
    if exact and oracle_T is not None and (short := most - float(oracle_T.mean())) > slack:
        # The chance of so small a mean is that of so large a mean loss.
        upside_down = Range(-bounds.high, -bounds.low)
        if chance_of_mean(short - most, -most, upside_down, len(oracle_T)) < _CHANCE:
            return (
                f"the oracle earns {short:.4f} less than the optimum, which is stated to be exact"
            )
    return ""
