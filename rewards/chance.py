"""How likely chance explains a mean of bounded returns."""

import math

from tokengym.rewards.bounds import Range


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
