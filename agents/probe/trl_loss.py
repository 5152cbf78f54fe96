"""The update that the settings of TRL's `GRPOConfig` document, by arithmetic of our own.

Every term of the loss is a weight of tokens: minus the derivative of the loss by a token's
log-probability; an entropy bonus alone is a direction of its own. `documented_update` adds them up
over the micro-batches of an optimizer step.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tokengym.agents.probe.batch import ProbeBatch
from tokengym.agents.probe.documented import DocumentedUpdate, Part
from tokengym.agents.probe.estimators import CENTRED, group_means, standardised
from tokengym.agents.probe.hypotheses import CUT, OWN_MEAN, SUMMED
from tokengym.rewards.arrays import Flags, Floats, Ints

LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "cispo", "sapo", "vespo")
_ADDED = 1e-4
"""Constant that TRL adds to standard deviations."""


def documented_update(args: Any, batch: ProbeBatch, micro: Sequence[Ints]) -> DocumentedUpdate:
    """Return the update of an optimizer step.

    Args:
        args: the `GRPOConfig`.
        batch: scored at the weights before.
        micro: numbers of the rollouts in each micro-batch.
    """
    trained_K = batch.own_K
    if args.mask_truncated_completions:
        trained_K = trained_K & ~batch.cut_N[batch.table.rollout_K]
    counts_N = batch.counts_N(trained_K)
    bonus_N = np.zeros(len(counts_N))
    policy_K, penalty_K = np.zeros(len(trained_K)), np.zeros(len(trained_K))
    for rows_M in micro:
        here_K = trained_K & np.isin(batch.table.rollout_K, rows_M)
        one = _MicroBatch(args, batch, rows_M, here_K, counts_N)
        policy_K += one.policy()
        penalty_K += one.penalty()
        bonus_N[rows_M] += args.entropy_coef / max(1.0, counts_N[rows_M].sum())
    bonus_P = (bonus_N * (counts_N > 0)) @ batch.table.entropies_NP / len(micro)
    parts = tuple(_parts(args, batch, len(micro), bool(penalty_K.any())))
    seen_N = np.isin(np.arange(len(counts_N)), np.concatenate(micro))
    return DocumentedUpdate(parts, policy_K, penalty_K, bonus_P, seen_N)


class _MicroBatch:
    """The rows of one backward pass.

    Args:
        args: the configuration.
        batch: the batch.
        rows_M: numbers of the rows' rollouts.
        here_K: their tokens that are trained.
        counts_N: tokens of every rollout that are trained.
    """

    def __init__(
        self, args: Any, batch: ProbeBatch, rows_M: Ints, here_K: Flags, counts_N: Floats
    ) -> None:
        self.args, self.batch, self.here_K = args, batch, here_K
        self.rows_K = batch.table.rollout_K
        self.sequence = args.importance_sampling_level == "sequence"
        self.count_K = np.maximum(counts_N, 1.0)[self.rows_K]
        self.mean_K = self.of_rows(batch.log_ratio_K) / self.count_K
        log_K = self.mean_K if self.sequence else np.where(here_K, batch.log_ratio_K, 0.0)
        self.ratio_K = np.exp(log_K)
        self.advantage_K = _advantages(args, batch)[self.rows_K]
        each_N = _averages(args, rows_M, counts_N) / args.gradient_accumulation_steps
        self.each_K = each_N[self.rows_K] * here_K

    def of_rows(self, values_K: Floats) -> Floats:
        """Return the sum over each row's tokens, at all of them."""
        sums_N = np.bincount(self.rows_K, values_K * self.here_K, len(self.batch.rollouts))
        return np.asarray(sums_N[self.rows_K], np.float64)

    def through_ratio(self, values_K: Floats) -> Floats:
        """Return the derivative by log-probabilities of values that multiply the ratio."""
        values_K = values_K * self.ratio_K
        if not self.sequence:
            return values_K
        return np.asarray(self.of_rows(values_K) / self.count_K * self.here_K)

    def policy(self) -> Floats:
        """Return the weights of tokens by the policy's loss."""
        args, advantage_K = self.args, self.advantage_K
        kept_K = self.each_K * self.kept()
        if args.loss_type == "cispo":
            bounded_K = np.minimum(self.ratio_K, _epsilon_high(args))
            return np.asarray(bounded_K * advantage_K * kept_K)
        if args.loss_type == "vespo":
            return np.asarray(self.gamma() * advantage_K * kept_K)
        return self.through_ratio(self.slope() * kept_K)

    def penalty(self) -> Floats:
        """Return the weights of tokens by the KL penalty."""
        args, batch = self.args, self.batch
        if batch.reference_K is None:
            return np.zeros_like(self.each_K)
        away_K = np.where(self.here_K, batch.reference_K - batch.table.logprob_K, 0.0)
        pull_K, each_K = np.expm1(away_K), args.beta * self.each_K
        if not args.use_bias_correction_kl:
            return np.asarray(each_K * pull_K)
        estimate_K = self.through_ratio(each_K * (pull_K - away_K))
        return np.asarray(each_K * self.ratio_K * pull_K - estimate_K)

    def slope(self) -> Floats:
        """Return the derivative of a token's gain by its ratio: clipped, or gated softly."""
        args, ratio_K, advantage_K = self.args, self.ratio_K, self.advantage_K
        if args.loss_type == "sapo":
            heat_K = np.where(advantage_K > 0, args.sapo_temperature_pos, args.sapo_temperature_neg)
            gate_K = 1.0 / (1.0 + np.exp(-heat_K * (ratio_K - 1.0)))
            return np.asarray(4.0 * gate_K * (1.0 - gate_K) * advantage_K)
        low, high = 1.0 - args.epsilon, 1.0 + _epsilon_high(args)
        delta = np.inf if args.delta is None else args.delta
        free_K = np.minimum(ratio_K, delta) * advantage_K
        bound_K = np.clip(ratio_K, low, high) * advantage_K
        inside_K = (ratio_K >= low) & (ratio_K <= high)
        # Of two equal terms each gets half of the gradient.
        either_K = ((ratio_K <= delta) * 1.0 + inside_K) / 2.0
        passed_K = np.where(free_K < bound_K, ratio_K <= delta, inside_K)
        return np.where(free_K == bound_K, either_K, passed_K) * advantage_K

    def gamma(self) -> Floats:
        """Return VESPO's weight of a sequence, e^λ w^k e^(-λ w) of its ratio w."""
        args, positive_K = self.args, self.advantage_K >= 0
        log_K = np.clip(self.of_rows(self.batch.log_ratio_K), np.log(1e-8), 20.0)
        power_K = np.where(positive_K, args.vespo_k_pos, args.vespo_k_neg)
        decay_K = np.where(positive_K, args.vespo_lambda_pos, args.vespo_lambda_neg)
        decay_K = np.maximum(decay_K, 1e-4)
        return np.asarray(np.exp(decay_K + power_K * log_K - decay_K * np.exp(log_K)))

    def kept(self) -> Flags:
        """Return the tokens that entropy and the off-policy mask leave in the policy's loss."""
        args, kept_K = self.args, self.here_K
        if args.off_policy_mask_threshold is not None:
            near_K = -self.mean_K <= args.off_policy_mask_threshold
            kept_K = kept_K & ((self.advantage_K >= 0) | near_K)
        if args.top_entropy_quantile < 1.0 and self.here_K.any():
            entropy_K = self.batch.table.entropy_K
            least = np.quantile(entropy_K[self.here_K], 1.0 - args.top_entropy_quantile)
            # The token at the threshold differs from it by no more than rounding.
            kept_K = kept_K & (entropy_K >= least - 1e-5)
        return kept_K


def _epsilon_high(args: Any) -> float:
    return float(args.epsilon if args.epsilon_high is None else args.epsilon_high)


def _advantages(args: Any, batch: ProbeBatch) -> Floats:
    """Return the advantage of each rollout, of one reward function."""
    rewards_N = batch.rewards_N
    scaled_N = standardised(rewards_N, batch.groups_N, 1, _ADDED)
    if args.multi_objective_aggregation == "normalize_then_sum":
        return np.asarray((scaled_N - scaled_N.mean()) / (scaled_N.std(ddof=1) + _ADDED))
    if args.scale_rewards == "group":
        return scaled_N
    deviation = rewards_N.std(ddof=1) + _ADDED if args.scale_rewards == "batch" else 1.0
    return np.asarray((rewards_N - group_means(rewards_N, batch.groups_N)) / deviation)


def _averages(args: Any, rows_M: Ints, counts_N: Floats) -> Floats:
    """Return what a token's loss is multiplied with, by rollout, apart from accumulation."""
    rows, ones_N = max(1, len(rows_M)), np.ones(len(counts_N))
    if args.loss_type in ("grpo", "sapo"):
        return np.asarray(ones_N / np.maximum(counts_N, 1.0) / rows)
    tokens, most = max(1.0, float(counts_N[rows_M].sum())), rows * args.max_completion_length
    divisors = {"bnpo": tokens, "dr_grpo": most, "luspo": rows}
    whole = max(1.0, float(counts_N.sum())) / args.steps_per_generation
    return np.asarray(ones_N / divisors.get(args.loss_type, whole))


def _parts(args: Any, batch: ProbeBatch, passes: int, penalty: bool) -> Iterator[Part]:
    """Yield what the settings come to: formulas, the settings that say so, names of biases."""
    loss, scale = (f'{name}="{getattr(args, name)}"' for name in ("loss_type", "scale_rewards"))
    if args.multi_objective_aggregation == "normalize_then_sum":
        scale = f'multi_objective_aggregation="{args.multi_objective_aggregation}"'
        yield Part("standardised by group, then by batch", scale, "standardised")
    elif args.scale_rewards == "group":
        yield Part("standardised by group (ddof 1, eps 0.0001)", scale, "standardised")
    else:
        yield Part(CENTRED, scale)
    if args.loss_type in ("grpo", "sapo"):
        yield Part(OWN_MEAN, loss, "length")
    elif args.loss_type == "bnpo" and passes > 1:
        yield Part("token mean of each micro-batch", loss, "micro-batches")
    else:
        yield Part(SUMMED, loss)
    if batch.off_policy:
        own = args.loss_type in ("cispo", "sapo", "vespo")
        yield Part(_ratio(args), loss if own else "epsilon")
    share, limit = args.top_entropy_quantile, args.off_policy_mask_threshold
    highest = f"only the share {share:g} of tokens with the highest entropy"
    others = {
        Part(CUT, "mask_truncated_completions", "cut replies"): (
            args.mask_truncated_completions and batch.cut_N.any()
        ),
        Part(highest, "top_entropy_quantile", "entropy quantile"): share < 1.0,
        Part("bad replies that drifted left out", "off_policy_mask_threshold", "off-policy mask"): (
            limit is not None and batch.off_policy
        ),
        Part("with a KL penalty to the reference", "beta"): penalty,
        Part("with an entropy bonus", "entropy_coef"): args.entropy_coef != 0.0,
    }
    yield from (part for part, holds in others.items() if holds)


def _ratio(args: Any) -> str:
    """Return what the importance ratio becomes, in words."""
    sequence = args.importance_sampling_level == "sequence"
    ratio, high = "ratio of its sequence (GSPO)" if sequence else "ratio", _epsilon_high(args)
    of_loss = {
        "cispo": f"times the {ratio}, at most {high:g} (CISPO)",
        "sapo": f"times the soft gate of the {ratio} (SAPO)",
        "vespo": "times the gamma weight of its sequence's ratio (VESPO)",
    }
    most = "" if args.delta is None else f", at most {args.delta:g}"
    clipped = f"times the {ratio}, clipped at {args.epsilon:g}, {high:g}{most}"
    return of_loss.get(args.loss_type, clipped)
