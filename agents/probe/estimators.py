"""Estimators: from rewards to advantages, under the names by which trainers know them."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import factorial, prod
from typing import NamedTuple

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.rewards.arrays import Floats, Ints

CENTRED = "centred by group"
STANDARDISED = tuple(product((1, 0), (0.0, 1e-8, 1e-6, 1e-5, 1e-4)))
"""Known ways to standardise: degrees of freedom lost, and what is added to the deviation."""
RARE = (0.7, 0.25, 0.05), (0.1, 0.2, 5.0)
"""Probabilities and rewards of three replies; one is rare and great."""


class BatchAdvantages(NamedTuple):
    """Advantages of a batch.

    Attributes:
        name: the estimator's.
        advantages_K: of every column, whatever it holds.
        bias: short name of what keeps its expectation from being the gradient of the expected
            return, up to a factor; empty if it is.
        noise: what it costs in variance, where it does.
        standard: its entry of `STANDARDISED`, if it has one.
    """

    name: str
    advantages_K: Floats
    bias: str = ""
    noise: str = ""
    standard: tuple[int, float] | None = None


def group_means(values_N: Floats, groups_N: Ints) -> Floats:
    """Return for each rollout the mean of its group."""
    return np.asarray((np.bincount(groups_N, values_N) / np.bincount(groups_N))[groups_N])


def standardised(
    rewards_N: Floats, groups_N: Ints, ddof: int, epsilon: float, power: int = 1
) -> Floats:
    """Return rewards centred by group, divided by a power of its deviation; 0 if all are equal."""
    centred_N = rewards_N - group_means(rewards_N, groups_N)
    freedom = np.maximum(np.bincount(groups_N) - ddof, 1)
    scale_N = np.sqrt(np.bincount(groups_N, centred_N**2) / freedom)[groups_N] + epsilon
    return np.divide(centred_N, scale_N**power, out=0 * centred_N, where=scale_N > 1e-12)


@lru_cache
def expected_cosine(size: int, ddof: int, epsilon: float) -> float:
    """Return the cosine of the expected standardised update and the true gradient on `RARE`.

    The policy is a softmax over the three replies: the score of one is its unit vector less the
    probabilities, which advantages that sum to 0 cancel. All groups are enumerated.

    Args:
        size: rollouts in a group.
        ddof: degrees of freedom lost.
        epsilon: what is added to the deviation.
    """
    chances, rewards = np.array(RARE[0]), np.array(RARE[1])
    expected = np.zeros(3)
    for replies in combinations_with_replacement(range(3), size):
        counts = np.bincount(replies, minlength=3)
        orders = factorial(size) // prod(factorial(int(count)) for count in counts)
        advantages = standardised(rewards[list(replies)], np.zeros(size, int), ddof, epsilon)
        expected += orders * prod(chances**counts) * np.bincount(replies, advantages, 3)
    true = chances * (rewards - chances @ rewards)
    return float(expected @ true / np.linalg.norm(expected) / np.linalg.norm(true))


def estimators(batch: ProbeBatch, rewards_N: Floats, groups_N: Ints) -> Iterator[BatchAdvantages]:
    """Yield the known estimators of a batch, the unbiased ones first.

    They are computed here, by no code of the trainers that are probed.

    Args:
        batch: the batch.
        rewards_N: its returns, or what a fault makes of them.
        groups_N: its groups, or what a fault makes of them.
    """
    rollout_K = batch.table.rollout_K
    centred_N = rewards_N - group_means(rewards_N, groups_N)
    sizes_N = np.bincount(groups_N)[groups_N]
    yield BatchAdvantages(CENTRED, centred_N[rollout_K])
    others_N = centred_N * sizes_N / np.maximum(sizes_N - 1, 1)
    yield BatchAdvantages("leave-one-out", others_N[rollout_K])
    noisier = "the baseline adds noise only"
    by_batch_N = rewards_N - rewards_N.mean()
    yield BatchAdvantages("centred by batch", by_batch_N[rollout_K], noise=noisier)
    yield BatchAdvantages("rewards as they are", rewards_N[rollout_K], noise="no baseline")
    for ddof, epsilon in STANDARDISED:
        name = f"standardised by group (ddof {ddof}, eps {epsilon:g})"
        divided_N = standardised(rewards_N, groups_N, ddof, epsilon)
        yield BatchAdvantages(name, divided_N[rollout_K], "standardised", standard=(ddof, epsilon))
    yield from _by_batch(batch, centred_N)


def _by_batch(batch: ProbeBatch, centred_N: Floats) -> Iterator[BatchAdvantages]:
    """Yield estimators that look at the whole batch or at turns.

    Dividing the whole batch by one number changes nothing but the step size: it is not listed.
    """
    rollout_K = batch.table.rollout_K
    token_K = centred_N[rollout_K]
    if batch.own_K.any():
        shifted_K = token_K - token_K[batch.own_K].mean()
        name = "centred by group, then over the tokens of the batch (REINFORCE++)"
        yield BatchAdvantages(name, shifted_K, "shifted")
        live_N = group_means(np.abs(centred_N), batch.groups_N) > 1e-12
        live_K = np.where(live_N[rollout_K], shifted_K, 0.0)
        yield BatchAdvantages(f"{name}, ties at 0", live_K, "shifted")
    if any(rollout.turn_rewards is not None for rollout in batch.rollouts):
        to_go_K = _by_turn(batch, lambda rewards_NT: rewards_NT[:, ::-1].cumsum(1)[:, ::-1])
        yield BatchAdvantages("returns to go, centred by group and turn", to_go_K)
        name = "rewards of each turn alone, centred by group and turn"
        yield BatchAdvantages(name, _by_turn(batch, lambda rewards_NT: rewards_NT), "turns alone")


def _by_turn(batch: ProbeBatch, credit: Callable[[Floats], Floats]) -> Floats:
    """Return what the rewards of turns are credited with, [N, T], centred by group and turn."""
    turns = int(batch.last_turn_N.max()) + 1
    rewards_NT = np.zeros((len(batch.rollouts), turns))
    taken_NT = np.arange(turns) <= batch.last_turn_N[:, None]
    for n, rollout in enumerate(batch.rollouts):
        # Where turns are not told apart, all is paid for the last one.
        rewards_NT[n, len(rollout.turns) - 1] = rollout.reward
        if rollout.turn_rewards is not None:
            rewards_NT[n, : len(rollout.turns)] = rollout.turn_rewards
    credit_NT = credit(rewards_NT).copy()
    for turn in range(turns):
        taken = taken_NT[:, turn]
        groups = np.unique(batch.groups_N[taken], return_inverse=True)[1]
        credit_NT[taken, turn] -= group_means(credit_NT[taken, turn], groups)
    return np.asarray(credit_NT[batch.table.rollout_K, np.maximum(batch.turn_K, 0)])
