"""The settings of TRL's `GRPOConfig`: which are judged, which are replaced, which are refused."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

from transformers import TrainingArguments
from trl.scripts.utils import ScriptArguments
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.model_config import ModelConfig
from trl.trainer.utils import get_peft_config

from tokengym.agents.probe.trl_loss import LOSSES
from tokengym.envs.core.errors import OptionError, require_one_of

MOST_ROLLOUTS = 128
"""Of one generation: scoring more takes minutes and gigabytes."""
_CHOICES: Mapping[str, Sequence[object]] = {
    "loss_type": LOSSES,
    "scale_rewards": ("group", "batch", "none", True, False),
    "importance_sampling_level": ("token", "sequence"),
    "multi_objective_aggregation": ("sum_then_normalize", "normalize_then_sum"),
    "optim": ("adamw_torch", "adamw_torch_fused"),
    "mask_truncated_completions": (True, False),
    "use_bias_correction_kl": (True, False),
    "sync_ref_model": (True, False),
}
_SIZES = ("per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation")
_LIMITS = {
    # Beyond these the rounding of float32 hides the gradient.
    "temperature": (0.1, 10.0),
    "top_entropy_quantile": (0.0, 1.0),
    "ref_model_mixup_alpha": (0.0, 1.0),
    **dict.fromkeys(("beta", "entropy_coef", "off_policy_mask_threshold"), (-1e3, 1e3)),
    **dict.fromkeys(("epsilon", "epsilon_high"), (0.0, 1e3)),
    **dict.fromkeys(("delta", "sapo_temperature_neg", "sapo_temperature_pos"), (1e-3, 1e3)),
    **dict.fromkeys(("vespo_k_pos", "vespo_lambda_pos"), (0.0, 100.0)),
    **dict.fromkeys(("vespo_k_neg", "vespo_lambda_neg"), (0.0, 100.0)),
}
_LEAST = {
    **dict.fromkeys((*_SIZES, "generation_batch_size", "max_completion_length"), 1),
    **dict.fromkeys(("num_iterations", "ref_model_sync_steps"), 1),
    "num_generations": 2,
}
JUDGED = frozenset({*_CHOICES, *_LIMITS, *_LEAST})
"""Fields that change the gradient: it is derived from the configuration."""
PLAIN = frozenset(
    {
        *("disable_dropout", "pad_to_multiple_of", "cast_lm_head_to_fp32", "max_grad_norm"),
        *("gradient_checkpointing", "gradient_checkpointing_kwargs", "label_smoothing_factor"),
        *("adam_beta1", "adam_beta2", "adam_epsilon", "weight_decay"),
        *("router_aux_loss_coef", "use_peft"),
        *("lora_r", "lora_alpha", "lora_target_modules", "lora_modules_to_save", "lora_task_type"),
        *("use_rslora", "lora_target_parameters"),
    }
)
"""Fields that are handed on: the gradient does not depend on them, up to a factor. All others of
`GRPOConfig` are replaced, and named: hardware, samplers, further reward functions, steps, logs."""
_REFUSED = {
    "neftune_noise_alpha": "it adds noise to the gradient",
    "use_adaptive_entropy": "the coefficient depends on all steps before",
}


@dataclass(frozen=True)
class TrlSettings:
    """Settings of a run.

    Attributes:
        given: settings of `GRPOConfig` that the run has.
        lora: PEFT's configuration; `None` for full weights.
        replaced: names of settings that are not probed.
    """

    given: Mapping[str, Any]
    lora: Any
    replaced: tuple[str, ...]


def read_settings(settings: Mapping[str, Any]) -> TrlSettings:
    """Return what can be probed of settings as people write them.

    Raises:
        OptionError: naming a setting that is unknown, out of range, or cannot be judged.
    """
    owners = (GRPOConfig, ModelConfig, ScriptArguments, TrainingArguments)
    known, of_model, *_ = names = [{one.name for one in fields(owner)} for owner in owners]
    for name, value in settings.items():
        if not any(name in one for one in names):
            raise OptionError(f"--set takes settings of GRPOConfig, it has no {name!r}")
        if name in _REFUSED and value:
            raise OptionError(f"{name} cannot be judged: {_REFUSED[name]}")
        _require_valid(name, value)
    kept = {name: value for name, value in settings.items() if name in JUDGED | PLAIN}
    if kept.get("entropy_coef") and kept.get("top_entropy_quantile", 1.0) < 1.0:
        raise OptionError("entropy_coef cannot be judged with a top_entropy_quantile below 1")
    lora = {name: value for name, value in kept.items() if name in of_model}
    with refusals_named():
        peft = get_peft_config(ModelConfig(**{**lora, "lora_dropout": 0.0}))
    given = {name: value for name, value in kept.items() if name in known}
    return TrlSettings(given, peft, tuple(settings.keys() - kept.keys()))


def _require_valid(name: str, value: Any) -> None:
    """Refuse values that are not judged.

    Raises:
        OptionError: naming the setting and what is judged.
    """
    if name in _CHOICES:
        require_one_of(name, value, _CHOICES[name])
    if value is None and getattr(GRPOConfig, name, None) is None:
        return
    if name in _LIMITS:
        low, high = _LIMITS[name]
        if not isinstance(value, int | float) or not low <= value <= high:
            raise OptionError(f"{name} is judged from {low:g} to {high:g}, got {value!r}")
    if name in _LEAST and (not isinstance(value, int) or value < _LEAST[name]):
        raise OptionError(f"{name} must be a whole number from {_LEAST[name]}, got {value!r}")


@contextmanager
def refusals_named() -> Iterator[None]:
    """Turn what TRL raises about settings into a sentence.

    Raises:
        OptionError: if the block raises such an error.
    """
    try:
        yield
    except (ImportError, TypeError, ValueError) as error:
        raise OptionError(f"TRL does not take these settings: {error}") from error


def batch_sizes(given: Mapping[str, Any], group: int, most: int) -> dict[str, int]:
    """Return the sizes of batches.

    Those given are kept, the others chosen so that there are up to `most` groups; a batch of
    more than `MOST_ROLLOUTS` gets fewer rollouts a device.

    Args:
        given: settings; some of the sizes may be among them.
        group: rollouts in a group.
        most: how many groups are worth having.

    Raises:
        OptionError: if no batch of whole groups has these sizes.
    """
    device, parts = _generation(given, group, most)
    while parts * device > MOST_ROLLOUTS and device % 2 == 0 and parts * device // 2 % group == 0:
        device //= 2
    if (rollouts := parts * device) % group or rollouts > MOST_ROLLOUTS:
        rule = f"whole groups of {group} and at most {MOST_ROLLOUTS} rollouts, got {rollouts}"
        text = f"a generation must have {rule}: per_device_train_batch_size"
        raise OptionError(f"{text} stands for all processes")
    asked = {"steps_per_generation", "generation_batch_size"} & given.keys()
    accumulated = given.get("gradient_accumulation_steps") or (1 if asked else parts)
    passes = parts * given.get("num_iterations", 1)
    if passes % accumulated:
        rule = f"must divide the {passes} backward passes of a generation"
        raise OptionError(f"gradient_accumulation_steps {rule}, got {accumulated}")
    return dict(zip(_SIZES, (device, accumulated, parts), strict=True))


def _generation(given: Mapping[str, Any], group: int, most: int) -> tuple[int, int]:
    """Return rollouts a device and backward passes of a generation."""
    device, total = (given.get(x) for x in ("per_device_train_batch_size", "generation_batch_size"))
    parts = given.get("steps_per_generation") or given.get("gradient_accumulation_steps")
    if total is not None:
        parts = (parts or 1) if device is None else max(1, total // device)
        return total // parts, parts
    if parts is None:
        device = device or 2 * group
        smallest = math.lcm(device, group) // device
        return device, max(1, most * group // device // smallest) * smallest
    if device is None:
        smallest = math.lcm(parts, group) // parts
        device = max(1, most * group // parts // smallest) * smallest
    return device, parts
