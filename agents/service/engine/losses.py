"""The losses of forward_backward, each a sum over tokens, as Tinker's documentation defines them.

A `Loss` says all that the service knows of one; those in `LOSSES` can be asked for.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tokengym.agents.service.errors import BadRequestError

Tensors = Mapping[str, Tensor]
"""Per-token inputs by name, [N] each."""
Settings = Mapping[str, float]
"""The settings of a loss by name."""
Formula = Callable[[Tensor, Tensors, Settings], Tensor]
"""From log-probabilities [N], inputs and settings to the loss of each token, [N]."""

LOW, HIGH = CLIPS = "clip_low_threshold", "clip_high_threshold"
RATIO_MASK, SEQUENCE_RATIO = "sequence_ratio_mask", "sequence_log_ratio"
TRUNCATION = 2.0


@dataclass(frozen=True)
class Loss:
    """One loss: its name, what it reads within which limits, and its formula.

    Attributes:
        name: the `loss_fn` of a request.
        formula: the loss of each token; what it gives for a token without a gradient is not used.
        required: per-token inputs that must be there besides `target_tokens`.
        optional: per-token inputs that may be there.
        scale: the input that scales the loss: where it is zero, a token has no gradient. A datum
            that may leave it out has ones.
        anchored: whether a token that was sampled (`logprobs` not 0) has a gradient whatever its
            scale.
        settings: the keys of loss_fn_config, finite and at least 0, with the value each has unless
            given; `None` if it must be.
        many_targets: whether a token may have several targets.
        needs_provenance: whether data must say where their tokens come from.
        of_sequences: inputs that depend on whole sequences, from log-probabilities, inputs and the
            number of each token's sequence, [N] each. They cost one more pass over the logits.
    """

    name: str
    formula: Formula
    required: tuple[str, ...] = ("logprobs", "advantages")
    optional: tuple[str, ...] = ()
    scale: str = "advantages"
    anchored: bool = False
    settings: Mapping[str, float | None] = field(default_factory=dict)
    many_targets: bool = False
    needs_provenance: bool = False
    of_sequences: Callable[..., Mapping[str, NDArray[np.float32]]] | None = None

    def configured(self, config: Mapping[str, float | str]) -> Settings:
        """Return the value of every setting under a request's configuration, checked.

        Raises:
            BadRequestError: for a key that the loss does not read, a bad value, or one missing.
        """
        for key, value in config.items():
            if key not in self.settings:
                names = ", ".join(self.settings) or "none"
                raise BadRequestError(
                    f"loss_fn_config keys of {self.name} must be among: {names}; got {key!r}"
                )
            if isinstance(value, str) or not np.isfinite(value) or value < 0:
                raise BadRequestError(f"{key} must be a finite number of at least 0, got {value!r}")
        values = {**self.settings, **config}
        if missing := [key for key, value in values.items() if value is None]:
            raise BadRequestError(f"{self.name} needs {missing[0]} in loss_fn_config")
        settings = {key: float(value) for key, value in values.items() if value is not None}
        low, high = (settings.get(key, 0.0) for key in CLIPS)
        if low > high:
            raise BadRequestError(f"{LOW} must not exceed {HIGH}, got {low} and {high}")
        return settings

    def check(self, inputs: Mapping[str, NDArray[np.generic]], length: int, index: int) -> None:
        """Check one datum's inputs against the loss and the number of input tokens.

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
        if len(shape) == 2 and not self.many_targets:
            raise BadRequestError(
                f"datum {index}: {self.name} takes one target a token, got shape {shape}"
            )
        for key in self.required:
            if key not in inputs:
                raise BadRequestError(f"datum {index}: {self.name} needs {key} in loss_fn_inputs")
        known = ("target_tokens", *self.required, *self.optional)
        for key, value in inputs.items():
            if key not in known:
                names = ", ".join(known)
                raise BadRequestError(f"datum {index}: {self.name} reads {names}; got {key!r}")
            if value.shape != shape:
                raise BadRequestError(
                    f"datum {index}: {key} must have the shape of target_tokens {shape}, "
                    f"got {value.shape}"
                )
            if not np.isfinite(value).all():
                raise BadRequestError(f"datum {index}: {key} must be finite numbers")

    def has_gradient(self, inputs: Mapping[str, Any]) -> Any:
        """Return which tokens have a gradient, as arrays or tensors like the inputs."""
        scaled = inputs[self.scale] != 0
        return scaled | (inputs["logprobs"] != 0) if self.anchored else scaled

    def of_tokens(self, logprobs: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
        """Return the loss of every target token; their sum is the loss.

        Args:
            logprobs: float32 [N], differentiable.
            inputs: the loss's inputs, and those of whole sequences if it has any.
            settings: as `configured` returns them.
        """
        losses = self.formula(logprobs, inputs, settings)
        return torch.where(self.has_gradient(inputs), losses, 0.0)


def sequence_log_ratios(
    logprobs: NDArray[np.float32], inputs: Mapping[str, NDArray[Any]], sequences: NDArray[np.int64]
) -> Mapping[str, NDArray[np.float32]]:
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
    return {SEQUENCE_RATIO: np.asarray(means[sequences], np.float32)}


def _ratio(logprobs: Tensor, inputs: Tensors) -> Tensor:
    return torch.exp(logprobs - inputs["logprobs"])


def _clipped(ratio: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    low, high = (inputs.get(key, torch.tensor(settings[key])).to(ratio) for key in CLIPS)
    return torch.minimum(torch.maximum(ratio, low), high)


def _cross_entropy(p: Tensor, inputs: Tensors, _: Settings) -> Tensor:
    return -p * inputs["weights"]


def _importance_sampling(p: Tensor, inputs: Tensors, _: Settings) -> Tensor:
    return -_ratio(p, inputs) * inputs["advantages"]


def _pessimistic(ratio: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    advantages = inputs["advantages"]
    clipped = _clipped(ratio, inputs, settings)
    return -torch.minimum(ratio * advantages, clipped * advantages)


def _ppo(p: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    return _pessimistic(_ratio(p, inputs), inputs, settings)


def _gspo(p: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    return _pessimistic(torch.exp(inputs[SEQUENCE_RATIO] + p - p.detach()), inputs, settings)


def _cispo(p: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    return -_clipped(_ratio(p, inputs), inputs, settings).detach() * p * inputs["advantages"]


def _dro(p: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    away = p - inputs["logprobs"]
    return 0.5 * settings["beta"] * away.square() - p * inputs["advantages"]


def _stable_reinforce(p: Tensor, inputs: Tensors, settings: Settings) -> Tensor:
    away = p - inputs["logprobs"]
    ratio = torch.exp(away)
    leaving = settings["kl_coeff"] * (ratio - 1 - away)
    return leaving - ratio.detach().clamp(max=TRUNCATION) * p * inputs["advantages"]


_RATIO_BOUNDS = {LOW: 0.8, HIGH: 1.2}
LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss(
            "cross_entropy",
            _cross_entropy,
            required=(),
            optional=("weights",),
            scale="weights",
            many_targets=True,
        ),
        Loss("importance_sampling", _importance_sampling),
        Loss("ppo", _ppo, optional=CLIPS, settings=_RATIO_BOUNDS),
        Loss("cispo", _cispo, optional=CLIPS, settings=_RATIO_BOUNDS),
        Loss("dro", _dro, anchored=True, settings={"beta": None}),
        Loss(
            "gspo",
            _gspo,
            optional=(*CLIPS, RATIO_MASK),
            settings={LOW: 1 - 3e-4, HIGH: 1 + 4e-4},
            of_sequences=sequence_log_ratios,
        ),
        Loss(
            "stable_reinforce",
            _stable_reinforce,
            anchored=True,
            settings={"kl_coeff": 0.0},
            needs_provenance=True,
        ),
    )
}


def loss_named(name: str) -> Loss:
    """Return a loss by its name.

    Raises:
        BadRequestError: for a loss this service does not have.
    """
    if name not in LOSSES:
        raise BadRequestError(
            f"loss_fn must be one of {', '.join(sorted(LOSSES))} on the local service, got {name!r}"
        )
    return LOSSES[name]
