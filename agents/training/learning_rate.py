"""The default learning rates: the cookbook's scaling by model size, with a limit for rewards."""

import json
from pathlib import Path

from tinker_cookbook.exceptions import ConfigurationError
from tinker_cookbook.hyperparam_utils import get_lr

_UNCALIBRATED = 5e-4
"""Where the cookbook has no formula: its base rate for LoRA, unscaled."""
_FAMILIES = {"llama": "llama", "qwen2": "qwen", "qwen3": "qwen"}
"""Families that the cookbook has formulas for, by `model_type`."""
_EXPONENTS = {"llama": 0.781, "qwen": 0.0775}
_WIDTH = 2000
_NARROW_REWARDS = 3e-4
"""For learning from rewards, of models narrower than that: SmolLM2 learns at this rate, gains
nothing at 1e-3, and collapses at 5e-4 in the debate. The scaling gives 1.3e-3."""


def scaled_learning_rate(model: str, *, rewards: bool) -> float:
    """Return a learning rate for LoRA that suits a model.

    Args:
        model: directory of a local model, or the name of a hosted one.
        rewards: whether it learns from rewards on its own rollouts, and not from existing data.
    """
    config = Path(model) / "config.json"
    if not config.is_file():
        try:
            return get_lr(model)
        except (ConfigurationError, NotImplementedError):
            return _UNCALIBRATED
    found = json.loads(config.read_text(encoding="utf-8"))
    family = _FAMILIES.get(found.get("model_type"))
    if family is None:
        return _UNCALIBRATED
    if rewards and found["hidden_size"] < _WIDTH:
        return _NARROW_REWARDS
    return float(_UNCALIBRATED * (_WIDTH / found["hidden_size"]) ** _EXPONENTS[family])
