"""Schemes: from the rewards of a batch to the weight of each step's score, by the package itself.

Advantages are `credit.advantages` of the training loop, losses those of the local service. What
neither has, means over lengths, is written out here.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from benchmarks.estimators.exact import Batches
from tokengym.agents.service.engine.losses import LOSSES
from tokengym.agents.training.batches.credit import TurnTable, advantages, spreads
from tokengym.agents.training.config import Algorithm
from tokengym.rewards import (
    by_turn,
    group_centred,
    group_standardised,
    remax,
    returns_to_go,
)
from tokengym.rewards.arrays import Floats

Scheme = Callable[[Batches], Floats]
"""From batches to weights, shape (N, B, G, T)."""


def table(of: Batches) -> TurnTable:
    """Return all groups of all batches as the training loop's table, of N * B groups."""
    count, prompts, size = of.members_NBG.shape
    rewards, tokens = (
        of.of_members(name).reshape(count * prompts, size, -1)
        for name in ("rewards_KT", "tokens_KT")
    )
    return TurnTable(rewards, tokens > 0, tokens, np.zeros_like(rewards))


def beyond_greedy(of: Batches) -> Floats:
    """Compare returns with that of each prompt's greedy rollout (ReMax)."""
    greedy_B = [each.rewards_KT[each.chance_K.argmax()].sum() for each in of.prompts]
    returns_NBG = of.of_members("rewards_KT").sum(axis=3)
    count, prompts, size = returns_NBG.shape
    found = remax(returns_NBG.reshape(count * prompts, size), np.tile(greedy_B, count))
    return found.reshape(*returns_NBG.shape, 1)


def by_group(**settings: Any) -> Scheme:
    """Return a scheme of the loop that looks at one group at a time."""
    algorithm = Algorithm(**settings)
    return lambda of: advantages(algorithm, table(of)).reshape(*of.members_NBG.shape, -1)


def reinforce_plus_plus(of: Batches) -> Floats:
    """Standardise over the tokens of each batch, by the loop."""
    algorithm, prompts = Algorithm("reinforce_plus_plus"), len(of.prompts)
    fields = vars(table(of)).values()
    found = [
        advantages(algorithm, TurnTable(*(values[n : n + prompts] for values in fields)))
        for n in range(0, prompts * len(of.members_NBG), prompts)
    ]
    return np.stack(found)


def by_batch(of: Batches) -> Floats:
    """Standardise the returns of the batch as if it were one group, of replies of one step."""
    returns_NBG = of.of_members("rewards_KT").sum(axis=3)
    found = group_standardised(returns_NBG.reshape(len(returns_NBG), -1))
    return found.reshape(*returns_NBG.shape, 1)


def live_only(of: Batches) -> Floats:
    """Drop dead groups and divide by the number of live ones, as `--denominator live` does."""
    live = spreads(Algorithm(), table(of)) > Algorithm().min_spread
    live_N = live.reshape(len(of.members_NBG), -1).sum(axis=1)
    scale_N = len(of.prompts) / np.maximum(live_N, 1)
    weights: Floats = by_group()(of) * scale_N[:, None, None, None]
    return weights


def length_mean(kind: str) -> Scheme:
    """Divide centred advantages by lengths, in units of the mean length.

    Args:
        kind: `sequence`, by the reply's own tokens (GRPO); `batch`, by the batch's mean (DAPO);
            `constant` (Dr. GRPO), which a sum over tokens is too.
    """

    def scheme(of: Batches) -> Floats:
        tokens_NBG = of.of_members("tokens_KT").sum(axis=3)
        usual = np.mean([each.chance_K @ each.tokens_KT.sum(axis=1) for each in of.prompts])
        lengths = {
            "sequence": tokens_NBG,
            "batch": tokens_NBG.mean(axis=(1, 2), keepdims=True),
            "constant": np.full((1, 1, 1), usual),
        }[kind]
        weights: Floats = by_group()(of) * (usual / lengths)[..., None]
        return weights

    return scheme


def loss(name: str) -> Scheme:
    """Return what a loss of the service multiplies each step's score by, off the policy."""

    def scheme(of: Batches) -> Floats:
        chosen = LOSSES[name]
        found, ratios = by_group(estimator="leave_one_out")(of), of.of_members("log_ratio_KT")
        logprobs = torch.tensor(ratios.ravel(), dtype=torch.float64, requires_grad=True)
        inputs = {"advantages": torch.tensor(found.ravel()), "logprobs": 0.0 * logprobs.detach()}
        losses = chosen.of_tokens(logprobs, inputs, chosen.configured({}))
        (slope,) = torch.autograd.grad(losses.sum(), logprobs)
        return -slope.numpy().reshape(found.shape)

    return scheme


def turn_index(of: Batches) -> Floats:
    """Centre each turn's reward, then add up the later turns: the construction of verl#7244."""
    rows = table(of)
    centred = by_turn(group_centred, rows.rewards_NGT, rows.taken_NGT)
    return np.where(rows.taken_NGT, returns_to_go(centred), 0.0).reshape(*of.members_NBG.shape, -1)


BY_GROUP: Mapping[str, Scheme] = {
    "centred by group": by_group(),
    "leave one out": by_group(estimator="leave_one_out"),
    "ReMax": beyond_greedy,
    "standardised by group": by_group(estimator="group_standardised"),
}
BY_BATCH: Mapping[str, Scheme] = {
    "centred by group": by_group(),
    "standardised by group": by_group(estimator="group_standardised"),
    "standardised by batch": by_batch,
    "REINFORCE++": reinforce_plus_plus,
    "centred, dead groups dropped": live_only,
}
LENGTHS: Mapping[str, Scheme] = {
    "a constant (Dr. GRPO; ours)": length_mean("constant"),
    "its own tokens (GRPO)": length_mean("sequence"),
    "the batch's tokens (DAPO)": length_mean("batch"),
}
TURNS: Mapping[str, Scheme] = {
    "episode, centred": by_group(),
    "turn, centred": by_group(credit="turn"),
    "turn, leave one out": by_group(credit="turn", estimator="leave_one_out"),
    "turn rewards centred by index": turn_index,
}
LOSSES_OFF_POLICY: Mapping[str, Scheme] = {
    "no weights": by_group(estimator="leave_one_out"),
    "`importance_sampling`": loss("importance_sampling"),
    "`stable_reinforce`, truncated at 2": loss("stable_reinforce"),
    "`cispo`": loss("cispo"),
    "`ppo`": loss("ppo"),
}
