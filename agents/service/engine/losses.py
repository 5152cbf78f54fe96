"""The losses of forward_backward, each a sum over tokens, as Tinker's documentation defines them.

With p the log-probability of a target token under the model, q the one it was sampled with, A its
advantage and r = exp(p - q):

    cross_entropy          -sum(p * weights)
    importance_sampling    -sum(r * A)
    ppo                    -sum(min(r * A, clip(r, low, high) * A))
    cispo                  -sum(stop_gradient(clip(r, low, high)) * p * A)
    dro                    -sum(p * A - beta / 2 * (p - q)^2)
    gspo                   -sum(min(s * A, clip(s, low, high) * A))
    stable_reinforce       -sum(stop_gradient(min(r, 2)) * p * A - kl_coeff * (r - 1 - log r))

`low` and `high` bound the ratio itself (0.8 and 1.2 unless `clip_low_threshold` and
`clip_high_threshold` say otherwise, in loss_fn_config or per token in loss_fn_inputs). In gspo,
which is GSPO-token of Zheng et al. 2025 (arXiv 2507.18071), s has the value of exp(mean(p - q))
over the tokens of its sequence that `sequence_ratio_mask` marks, and the gradient of its own p;
the bounds are that paper's, 1 - 3e-4 and 1 + 4e-4. dro is that of Richemond et al. 2024 (arXiv
2405.19107). Its square would act on prompts too: a token with q = 0 and A = 0 was not sampled.

Of stable_reinforce Tinker documents the purpose, learning from samples of other weights or numbers,
and not the formula. Here it is REINFORCE with truncated importance weights (Yao et al. 2025,
fengyao.notion.site/off-policy-rl, with their bound of 2), and kl_coeff, 0 unless given, weighs
Schulman's estimate of the divergence from the sampler (2020, joschu.net/blog/kl-approx.html).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

CLIP_LOW, CLIP_HIGH = 0.8, 1.2
GSPO_LOW, GSPO_HIGH = 1 - 3e-4, 1 + 4e-4
RATIO_MASK, SEQUENCE_RATIO = "sequence_ratio_mask", "sequence_log_ratio"
CLIPS = ("clip_low_threshold", "clip_high_threshold")
STABLE, TRUNCATION, KL_COEFF = "stable_reinforce", 2.0, "kl_coeff"


@dataclass(frozen=True)
class LossRule:
    """The inputs that one loss reads from a datum.

    Attributes:
        required: per-token inputs that must be there besides `target_tokens`.
        optional: per-token inputs that may be there.
        config: keys of loss_fn_config.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    config: tuple[str, ...] = ()


LOSSES: dict[str, LossRule] = {
    "cross_entropy": LossRule((), optional=("weights",)),
    "importance_sampling": LossRule(("logprobs", "advantages")),
    "ppo": LossRule(("logprobs", "advantages"), optional=CLIPS, config=CLIPS),
    "cispo": LossRule(("logprobs", "advantages"), optional=CLIPS, config=CLIPS),
    "dro": LossRule(("logprobs", "advantages"), config=("beta",)),
    "gspo": LossRule(("logprobs", "advantages"), optional=(*CLIPS, RATIO_MASK), config=CLIPS),
    STABLE: LossRule(("logprobs", "advantages"), config=(KL_COEFF,)),
}


def loss_rule(name: str, config: Mapping[str, float | str]) -> LossRule:
    """Return the rule of a named loss after checking its configuration.

    Raises:
        UnsupportedError: for a loss this service does not have.
        BadRequestError: for a configuration key the loss does not read, or a bad value.
    """
    if name not in LOSSES:
        raise UnsupportedError(
            f"loss_fn must be one of {', '.join(sorted(LOSSES))} on the local service, got {name!r}"
        )
    rule = LOSSES[name]
    for key, value in config.items():
        if key not in rule.config:
            names = ", ".join(rule.config) or "none"
            raise BadRequestError(
                f"loss_fn_config keys of {name} must be among: {names}; got {key!r}"
            )
        if isinstance(value, str) or not np.isfinite(value) or value < 0:
            raise BadRequestError(f"{key} must be a finite number of at least 0, got {value!r}")
    if name == "dro" and "beta" not in config:
        raise BadRequestError("dro needs beta, the weight of its square, in loss_fn_config")
    low, high = _bounds(name, config)
    if low > high:
        raise BadRequestError(
            f"clip_low_threshold must not exceed clip_high_threshold, got {low} and {high}"
        )
    return rule


def check_inputs(
    name: str, rule: LossRule, inputs: Mapping[str, NDArray[np.generic]], length: int, index: int
) -> None:
    """Check one datum's loss inputs against the loss and the number of input tokens.

    Raises:
        BadRequestError: naming the datum, the input and the rule.
    """
    if "target_tokens" not in inputs:
        raise BadRequestError(f"datum {index}: loss_fn_inputs must hold target_tokens")
    shape = inputs["target_tokens"].shape
    if shape[0] != length or len(shape) > 2:
        raise BadRequestError(
            f"datum {index}: target_tokens must have one row for each of the {length} input "
            f"tokens, got shape {shape}"
        )
    if len(shape) == 2 and name != "cross_entropy":
        raise BadRequestError(f"datum {index}: {name} takes one target a token, got shape {shape}")
    for key in rule.required:
        if key not in inputs:
            raise BadRequestError(f"datum {index}: {name} needs {key} in loss_fn_inputs")
    for key, value in inputs.items():
        if key == "target_tokens":
            continue
        if key not in rule.required and key not in rule.optional:
            names = ", ".join(("target_tokens", *rule.required, *rule.optional))
            raise BadRequestError(f"datum {index}: {name} reads {names}; got {key!r}")
        if value.shape != shape:
            raise BadRequestError(
                f"datum {index}: {key} must have the shape of target_tokens {shape}, "
                f"got {value.shape}"
            )
        if not np.isfinite(value).all():
            raise BadRequestError(f"datum {index}: {key} must be finite numbers")


def loss_weight(name: str) -> str:
    """Return the input that scales a loss: where it is zero, a token has no gradient."""
    return "weights" if name == "cross_entropy" else "advantages"


def has_loss(name: str, inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
    """Return which tokens have a gradient."""
    has_gradient: NDArray[np.bool_] = inputs[loss_weight(name)] != 0
    if name in ("dro", STABLE):
        has_gradient = has_gradient | (inputs["logprobs"] != 0)
    return has_gradient


def sequence_log_ratios(
    logprobs: Array, inputs: Mapping[str, NDArray[Any]], sequences: NDArray[np.int64]
) -> Array:
    """Return for each token the mean log-ratio of its sequence's marked tokens.

    Args:
        logprobs: [N], those of the policy that is trained.
        inputs: the loss's inputs, [N] each; without `sequence_ratio_mask` the marked tokens are
            those with an advantage.
        sequences: [N], the number of each token's sequence.
    """
    marked = np.asarray(inputs.get(RATIO_MASK, inputs["advantages"])) != 0
    ratios = np.where(marked, logprobs.astype(np.float64) - inputs["logprobs"], 0.0)
    totals, counts = np.bincount(sequences, ratios), np.bincount(sequences, marked)
    means = totals / np.maximum(counts, 1)
    return np.asarray(means[sequences], np.float32)


def _bounds(name: str, config: Mapping[str, float | str]) -> tuple[float, float]:
    low, high = (GSPO_LOW, GSPO_HIGH) if name == "gspo" else (CLIP_LOW, CLIP_HIGH)
    return float(config.get(CLIPS[0], low)), float(config.get(CLIPS[1], high))


def token_losses(
    name: str,
    logprobs: torch.Tensor,
    inputs: Mapping[str, torch.Tensor],
    config: Mapping[str, float | str],
) -> torch.Tensor:
    """Return the loss of every target token; their sum is the loss.

    Args:
        name: a key of `LOSSES`.
        logprobs: float32 [N], differentiable.
        inputs: the loss's inputs, each [N]; for gspo `sequence_log_ratio` among them.
        config: checked configuration.
    """
    if name == "cross_entropy":
        return -logprobs * inputs["weights"]
    away, advantages = logprobs - inputs["logprobs"], inputs["advantages"]
    ratio = torch.exp(away)
    if name in ("dro", STABLE):
        if name == "dro":
            loss = 0.5 * float(config["beta"]) * away.square() - logprobs * advantages
        else:
            weight = ratio.detach().clamp(max=TRUNCATION)
            leaving = float(config.get(KL_COEFF, 0.0)) * (ratio - 1 - away)
            loss = leaving - weight * logprobs * advantages
        return torch.where((advantages != 0) | (inputs["logprobs"] != 0), loss, 0.0)
    if name == "importance_sampling":
        return -ratio * advantages
    if name == "gspo":
        ratio = torch.exp(inputs[SEQUENCE_RATIO] + logprobs - logprobs.detach())
    low, high = (
        inputs.get(key, torch.tensor(bound)).to(ratio)
        for key, bound in zip(CLIPS, _bounds(name, config), strict=True)
    )
    clipped = torch.minimum(torch.maximum(ratio, low), high)
    if name in ("ppo", "gspo"):
        return -torch.minimum(ratio * advantages, clipped * advantages)
    return -clipped.detach() * logprobs * advantages
