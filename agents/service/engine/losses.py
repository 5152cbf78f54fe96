"""The losses of forward_backward, each a sum over tokens, as Tinker's documentation defines them.

With p the log-probability of a target token under the model, q the one it was sampled with, A its
advantage and r = exp(p - q):

    cross_entropy          -sum(p * weights)
    importance_sampling    -sum(r * A)
    ppo                    -sum(min(r * A, clip(r, low, high) * A))
    cispo                  -sum(stop_gradient(clip(r, low, high)) * p * A)

`low` and `high` bound the ratio itself (0.8 and 1.2 unless `clip_low_threshold` and
`clip_high_threshold` say otherwise, in loss_fn_config or per token in loss_fn_inputs).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from tokengym.agents.service.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Array = NDArray[np.float32]

CLIP_LOW, CLIP_HIGH = 0.8, 1.2
CLIPS = ("clip_low_threshold", "clip_high_threshold")


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
            known = ", ".join(rule.config) or "none"
            raise BadRequestError(
                f"loss_fn_config keys of {name} must be among: {known}; got {key!r}"
            )
        if isinstance(value, str) or not np.isfinite(value) or value < 0:
            raise BadRequestError(f"{key} must be a finite number of at least 0, got {value!r}")
    low = config.get("clip_low_threshold", CLIP_LOW)
    high = config.get("clip_high_threshold", CLIP_HIGH)
    if float(low) > float(high):
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
            known = ", ".join(("target_tokens", *rule.required, *rule.optional))
            raise BadRequestError(f"datum {index}: {name} reads {known}; got {key!r}")
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
        inputs: the loss's inputs, each [N].
        config: checked configuration.
    """
    if name == "cross_entropy":
        return -logprobs * inputs["weights"]
    ratio = torch.exp(logprobs - inputs["logprobs"])
    advantages = inputs["advantages"]
    if name == "importance_sampling":
        return -ratio * advantages
    low = inputs.get("clip_low_threshold", torch.tensor(float(config.get(CLIPS[0], CLIP_LOW))))
    high = inputs.get("clip_high_threshold", torch.tensor(float(config.get(CLIPS[1], CLIP_HIGH))))
    clipped = torch.minimum(torch.maximum(ratio, low.to(ratio)), high.to(ratio))
    if name == "ppo":
        return -torch.minimum(ratio * advantages, clipped * advantages)
    return -clipped.detach() * logprobs * advantages
