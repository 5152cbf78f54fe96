"""Checkpoints as files that other libraries load: a PEFT adapter."""

import json

import torch
from safetensors.torch import save

from tokengym.agents.service.engine.adapters import LORA_ALPHA, LoraWeights

_WEIGHTS, _CONFIG = "adapter_model.safetensors", "adapter_config.json"


def peft_files(weights: LoraWeights, model: str) -> dict[str, bytes]:
    """Return an adapter by file name, as `peft.PeftModel.from_pretrained` and vLLM read it.

    Args:
        weights: the adapter.
        model: name or directory of the model it belongs to.
    """
    tensors: dict[str, torch.Tensor] = {}
    for name, matrix in weights.tensors.items():
        module, _, side = name.rpartition(".")
        tensors[f"base_model.model.{module}.lora_{side}.weight"] = matrix.contiguous()
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": model,
        "r": weights.spec.rank,
        "lora_alpha": LORA_ALPHA,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": sorted(weights.adapters()),
    }
    return {
        _WEIGHTS: save(tensors, metadata={"format": "pt"}),
        _CONFIG: (json.dumps(config, indent=1) + "\n").encode(),
    }
