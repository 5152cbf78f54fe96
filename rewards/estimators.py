"""The registry of advantage estimators: one entry each, from which everything else follows.

The choices of `tokengym train --estimator`, the credit of the training loop, the laws in
`tests/rewards/test_estimators.py`, the table in docs/training.md and the trainers that
`tokengym probe own` runs are derived from `ESTIMATORS`. An estimator that is not registered here
does not exist for them; one that is must state the laws it obeys, and they are tested.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from tokengym.rewards.advantages import (
    MINIMUM_SPREAD,
    group_centred,
    group_standardised,
    leave_one_out,
    reinforce_plus_plus,
)
from tokengym.rewards.arrays import Flags, Floats


class Batch(NamedTuple):
    """N groups of G rollouts, as estimators read them.

    Attributes:
        values_NG: the values to compare, such as returns.
        counted_NG: which rollouts count.
        tokens_NG: tokens trained on of each rollout.
        minimum_spread: largest spread of a group that counts as none.
    """

    values_NG: Floats
    counted_NG: Flags
    tokens_NG: Floats
    minimum_spread: float = MINIMUM_SPREAD


class Estimator(NamedTuple):
    """An advantage estimator and the laws that it obeys.

    Whatever the estimator, adding one number to all rewards changes nothing, and a group whose
    rewards are equal gets exactly 0.

    Attributes:
        advantages: from a batch to one advantage per rollout, shape (N, G).
        title: its name in reports and in verdicts of the probe.
        source: author and year.
        caution: why not to take it; empty if there is no reason.
        sums_to_zero: whether the advantages of each group sum to 0.
        degree: rewards times c > 0 give advantages times c ** degree.
        own_group: whether the advantages of a group depend on that group alone.
        unbiased: whether its expectation is the gradient of the expected return, up to a factor.
    """

    advantages: Callable[[Batch], Floats]
    title: str
    source: str
    caution: str = ""
    sums_to_zero: bool = True
    degree: int = 1
    own_group: bool = True
    unbiased: bool = True


def _comparing(function: Callable[..., Floats]) -> Callable[[Batch], Floats]:
    return lambda batch: function(
        batch.values_NG, batch.counted_NG, minimum_spread=batch.minimum_spread
    )


ESTIMATORS: Mapping[str, Estimator] = MappingProxyType(
    {
        "group_centred": Estimator(
            _comparing(group_centred), "centred by group", "Liu et al. 2025 (Dr. GRPO)"
        ),
        "group_standardised": Estimator(
            _comparing(group_standardised),
            "standardised by group (ddof 1, eps 0)",
            "Shao et al. 2024 (GRPO)",
            "overweights prompts whose rewards hardly differ; makes forecasters overconfident",
            degree=0,
            unbiased=False,
        ),
        "leave_one_out": Estimator(
            _comparing(leave_one_out), "leave-one-out", "Ahmadian et al. 2024 (RLOO)"
        ),
        "reinforce_plus_plus": Estimator(
            lambda batch: reinforce_plus_plus(
                batch.values_NG,
                batch.tokens_NG,
                batch.counted_NG,
                minimum_spread=batch.minimum_spread,
            ),
            "centred by group, then over the tokens of the batch (REINFORCE++), ties at 0",
            "Hu 2025 (REINFORCE++)",
            "advantages of a group depend on the other groups of the batch",
            sums_to_zero=False,
            degree=0,
            own_group=False,
            unbiased=False,
        ),
    }
)
"""All estimators by the name that options take; the first is the default."""


def group_spreads(batch: Batch) -> Floats:
    """Return largest minus smallest value of each group, shape (N,); 0 where under two count."""
    values_NG, counted_NG = batch.values_NG, batch.counted_NG
    high_N = values_NG.max(axis=1, initial=-np.inf, where=counted_NG)
    low_N = values_NG.min(axis=1, initial=np.inf, where=counted_NG)
    several_N = counted_NG.sum(axis=1) >= 2
    spread_N: Floats = np.subtract(high_N, low_N, out=np.zeros_like(high_N), where=several_N)
    return spread_N
