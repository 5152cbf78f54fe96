"""Checkpoints as files that other libraries load: a PEFT adapter, optionally encrypted."""

import json
from collections.abc import Sequence
from typing import Any

import pyrage
import torch
from safetensors.torch import save

from tokengym.agents.service.engine.adapters import LORA_ALPHA, LoraSpec, LoraWeights
from tokengym.agents.service.engine.checkpoints import CheckpointPath, CheckpointStore
from tokengym.agents.service.errors import BadRequestError, UnknownResourceError

age: Any = pyrage  # a compiled module, whose names no checker sees

KIND = "external_weights"
MAX_RECIPIENTS = 10
_WEIGHTS, _CONFIG = "adapter_model.safetensors", "adapter_config.json"
_AGE = ".age"


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


def file_names(recipients: Sequence[str]) -> list[str]:
    """Return the names of an external checkpoint's files."""
    return [name + (_AGE if recipients else "") for name in (_CONFIG, _WEIGHTS)]


def read_file(checkpoints: CheckpointStore, path: CheckpointPath, name: str) -> bytes:
    """Return one file of an external checkpoint.

    Raises:
        UnknownResourceError: if there is no such checkpoint, or it has no such file.
        DamagedFileError: if the checkpoint does not hold what was saved.
    """
    tensors, info = checkpoints.load(path)
    if name not in file_names(info.recipients):
        raise UnknownResourceError(f"checkpoint {path.uri} has no file {name!r}")
    weights = LoraWeights.from_tensors(tensors, LoraSpec(**info.lora))
    content = peft_files(weights, info.base_model)[name.removesuffix(_AGE)]
    if not info.recipients:
        return content
    encrypted: bytes = age.encrypt(content, [_recipient(text) for text in info.recipients])
    return encrypted


def checked_recipients(recipients: Sequence[str] | None) -> tuple[str, ...]:
    """Return the age recipients to encrypt a checkpoint's files to; none for no encryption.

    Raises:
        BadRequestError: if they are too many, or one is no `age1...` or SSH public key.
    """
    keys = tuple(recipients or ())
    if len(keys) > MAX_RECIPIENTS:
        raise BadRequestError(f"age recipients must be at most {MAX_RECIPIENTS}, got {len(keys)}")
    for text in keys:
        _recipient(text)
    return keys


def _recipient(text: str) -> Any:
    kind = age.x25519 if text.startswith("age1") else age.ssh
    try:
        return kind.Recipient.from_str(text)
    except age.RecipientError as error:
        raise BadRequestError(
            f"age recipient must be an age1... key or an SSH public key, got {text[:100]!r}"
        ) from error
