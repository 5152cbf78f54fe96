"""Named faults: what becomes of the weights of tokens when a trainer has a known bug."""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch, logged
from tokengym.agents.probe.estimators import (
    CENTRED,
    STANDARDISED,
    BatchAdvantages,
    estimators,
    standardised,
)
from tokengym.agents.probe.hypotheses import Hypothesis, Ratio, Weighting, build, ratios, weightings
from tokengym.agents.probe.scores import COMPLETION, FIRST_PAD, LAST_PROMPT
from tokengym.rewards.arrays import Flags, Floats


class Fault(NamedTuple):
    """A known bug and the weights of tokens that it leads to.

    Attributes:
        name: a short one, for tables.
        sentence: what the trainer does.
        hypothesis: the weights with the bug.
        intended: the same without it, from which the harm is measured.
    """

    name: str
    sentence: str
    hypothesis: Hypothesis
    intended: Hypothesis


def faults(batch: ProbeBatch) -> Iterator[Fault]:
    """Yield every known fault under every estimator, averaging and ratio it can hide in."""
    plain = list(estimators(batch, batch.rewards_N, batch.groups_N))
    paid, masks = list(of_rewards(batch, plain)), list(_of_masks(batch))
    if all(rollout.advantages is not None for rollout in batch.rollouts):
        sentence = "the logged advantages are trained, which no estimator gives from the rewards"
        advantages_K = logged("advantages", batch.rollouts, batch.table, 0.0 * batch.sampled_K)
        paid.append(("advantages", sentence, BatchAdvantages("", advantages_K)))
    for ratio in ratios(batch):
        for number, weighting in enumerate(weightings(batch, batch.own_K)[:2]):
            intended = {one.name: build(batch, one, weighting, ratio, batch.own_K) for one in plain}
            for name, sentence, one in paid:
                made = build(batch, one, weighting, ratio, batch.own_K)
                yield Fault(name, sentence, made, intended.get(one.name, intended[CENTRED]))
            masked = (
                (name, sentence, weightings(batch, mask_K)[number], ratio, mask_K)
                for name, sentence, mask_K in masks
            )
            changed = chain(masked, _of_tokens(batch, weighting, ratio))
            for name, sentence, of_N, of_K, mask_K in changed:
                for one in plain:
                    made = build(batch, one, of_N, of_K, mask_K)
                    yield Fault(name, sentence, made, intended[one.name])


def of_rewards(
    batch: ProbeBatch, plain: list[BatchAdvantages]
) -> Iterator[tuple[str, str, BatchAdvantages]]:
    """Yield what faults make of the advantages of known estimators: name, sentence, advantages."""
    rewards_N, groups_N = batch.rewards_N, batch.groups_N
    changed = (
        ("next reward", "a rollout is paid the next one's reward", np.roll(rewards_N, -1)),
        ("clipped rewards", "rewards are clipped to [0, 1]", np.clip(rewards_N, 0, 1)),
        ("clipped rewards", "rewards are clipped to [-1, 1]", np.clip(rewards_N, -1, 1)),
    )
    for name, sentence, values_N in changed:
        for one in estimators(batch, values_N, groups_N):
            yield name, sentence, one
    numbers, groups = np.arange(len(rewards_N)), int(groups_N.max()) + 1
    half = max(1, len(rewards_N) // groups // 2)
    mixed = ((numbers % groups), (np.roll(numbers, -half) // max(1, len(rewards_N) // groups)))
    for other_N in mixed:
        dense_N = np.unique(other_N, return_inverse=True)[1]
        for one in estimators(batch, rewards_N, dense_N):
            yield "groups mixed", "rollouts are compared with those of other prompts", one
    for one in plain:
        advantages_K = one.advantages_K
        for name, sentence, values_K in (
            ("negatives dropped", "negative advantages are dropped", np.maximum(advantages_K, 0)),
            ("positives dropped", "positive advantages are dropped", np.minimum(advantages_K, 0)),
            ("absolute advantages", "advantages lose their sign", np.abs(advantages_K)),
            ("sign", "the sign is wrong: rewards are minimised", -advantages_K),
        ):
            yield name, sentence, BatchAdvantages(one.name, values_K)
    for ddof, epsilon in STANDARDISED:
        twice_N = standardised(rewards_N, groups_N, ddof, epsilon, power=2)
        twice = BatchAdvantages("divided twice", twice_N[batch.table.rollout_K])
        yield "double normalisation", "rewards are standardised twice", twice


def _of_masks(batch: ProbeBatch) -> Iterator[tuple[str, str, Flags]]:
    kind_K, own_K = batch.table.kind_K, batch.own_K
    follows = np.zeros_like(own_K)
    precedes = np.zeros_like(own_K)
    for first, second in pairwise(range(len(kind_K))):
        # Padding that is one column with more tokens is not shifted into.
        if batch.table.rollout_K[first] == batch.table.rollout_K[second]:
            follows[second] = own_K[first] and kind_K[second] <= FIRST_PAD
            precedes[first] = own_K[second] and kind_K[first] >= LAST_PROMPT
    yield "mask late", "the mask is one token late", follows
    # Without padding the last one falls off.
    yield "mask late", "the mask is one token late", follows & (kind_K == COMPLETION)
    yield "mask early", "the mask is one token early", precedes


def _of_tokens(
    batch: ProbeBatch, weighting: Weighting, ratio: Ratio
) -> Iterator[tuple[str, str, Weighting, Ratio, Flags]]:
    """Yield what a fault makes of the averaging and the ratio."""
    own_K = batch.own_K
    counts_N = np.maximum(batch.counts_N(own_K), 1.0)
    twice = Weighting("", 1.0 / counts_N**2)
    name = "double normalisation"
    yield name, "a rollout is divided by its length twice", twice, ratio, own_K
    if batch.off_policy:
        ones_K: Floats = np.ones_like(batch.log_ratio_K)
        sentence = "rollouts of older weights are trained without the importance ratio"
        yield "stale without ratio", sentence, weighting, Ratio("", *[ones_K] * 3), own_K
