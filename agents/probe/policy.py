"""The tiny language model that is trained, and weights in the formats in which trainers save."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, Qwen3Config, Qwen3ForCausalLM
from transformers.utils import logging

from tokengym.agents.probe.rollouts import LARGEST
from tokengym.agents.toy_model import MODEL_DIR
from tokengym.envs.core.errors import DataError

VOCABULARY = 1024
PAD, END = 0, 2
"""Ids of the tokenizer's padding and end tokens."""
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")

Weights = dict[str, torch.Tensor]


def tiny_model(seed: int = 0) -> Qwen3ForCausalLM:
    """Return a model of 53,000 parameters with random weights, float32, on the processor."""
    settings: dict[str, Any] = {
        **{"vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 64, "head_dim": 16},
        **{"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2},
        **{"max_position_embeddings": 2048, "initializer_range": 0.2, "tie_word_embeddings": True},
        **{"pad_token_id": PAD, "eos_token_id": END, "bos_token_id": None},
        "attn_implementation": "eager",
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Qwen3ForCausalLM = Qwen3ForCausalLM(Qwen3Config(**settings)).float().eval()
    return model


def write_tiny_model(folder: Path, seed: int = 0) -> None:
    """Write the model and its tokenizer as a Hugging Face model directory."""
    tiny_model(seed).save_pretrained(folder)
    for name in _TOKENIZER:
        shutil.copyfile(MODEL_DIR / name, folder / name)


def load_model(folder: Path) -> Any:
    """Return the causal language model in a directory.

    Raises:
        DataError: if there is none.
    """
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder} must be a model directory, there is no config.json in it")
    # A bar would stand before the verdict.
    logging.disable_progress_bar()
    with _naming(folder, "a model of transformers"):
        return AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation="eager", local_files_only=True
        ).eval()


@contextmanager
def _naming(path: Path, what: str) -> Iterator[None]:
    """Turn whatever damaged bytes make their reader raise into a sentence that names the file.

    Raises:
        DataError: if the block raises anything.
    """
    try:
        yield
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{path} must hold {what}, and cannot be read: {lines[0]}") from error


@dataclass(frozen=True)
class Checkpoint:
    """State that a trainer saved at one moment.

    Attributes:
        weights: by name.
        moments: Adam's first moments, or the buffers of momentum, by the name of the weight; empty
            if they were not saved.
        beta: their decay from step to step.
    """

    weights: Weights
    moments: Mapping[str, torch.Tensor]
    beta: float = 0.9


def load_checkpoint(path: Path, names: Sequence[str]) -> Checkpoint:
    """Read a checkpoint: a model directory, a .safetensors file, or one that torch saved.

    Beside it, `optimizer.pt` may hold the state of an optimizer of torch or Transformers.

    Args:
        path: of the checkpoint.
        names: of the model's parameters, in its order, which is that of the optimizer.

    Raises:
        DataError: if nothing there is a checkpoint, or a tensor is not of finite numbers.
    """
    if path.is_dir():
        files = sorted(path.glob("*.safetensors")) or sorted(path.glob("pytorch_model*.bin"))
    else:
        files = [path] if path.is_file() else []
    if not files:
        raise DataError(f"{path} holds no weights: no .safetensors and no pytorch_model.bin")
    weights: Weights = {}
    for file in files:
        weights |= _read(file)
    optimizer = (path if path.is_dir() else path.parent) / "optimizer.pt"
    if not optimizer.is_file():
        return Checkpoint(weights, {})
    with _naming(optimizer, "the state of an optimizer of torch"):
        state = torch.load(optimizer, map_location="cpu", weights_only=True)
        found = _with_optimizer(weights, state, [name for name in names if name in weights])
    _require_finite(found.moments, optimizer)
    return found


def _read(file: Path) -> Weights:
    with _naming(file, "weights by name"):
        if file.suffix == ".safetensors":
            weights: Weights = load_file(file)
        else:
            loaded = torch.load(file, map_location="cpu", weights_only=True)
            loaded = loaded.get("state_dict", loaded)
            weights = {n: value for n, value in loaded.items() if isinstance(value, torch.Tensor)}
    _require_finite(weights, file)
    return weights


def _require_finite(tensors: Mapping[str, torch.Tensor], file: Path) -> None:
    """Refuse tensors in which no update can be read.

    Raises:
        DataError: naming the file and the first of them.
    """
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise DataError(f"{file}: {name} must hold floating-point numbers, got {tensor.dtype}")
        if not (tensor.double().abs() <= LARGEST).all():
            raise DataError(f"{file}: {name} must hold finite numbers, within {LARGEST:g} of 0")


def _with_optimizer(weights: Weights, state: dict[str, Any], given: list[str]) -> Checkpoint:
    """Attach moments or buffers of momentum, numbered in the order of the parameter groups.

    Transformers puts parameters with weight decay first; the shapes tell which order was used.
    """
    numbers = [number for group in state["param_groups"] for number in group["params"]]
    kept = [state["state"].get(number, {}) for number in numbers]
    moments = [one.get("exp_avg", one.get("momentum_buffer")) for one in kept]
    if any(moment is None for moment in moments):
        return Checkpoint(weights, {})
    decayed = [n for n in given if not n.endswith("bias") and "norm" not in n.lower()]
    orders = (given, decayed + [name for name in given if name not in decayed])
    for names in orders:
        shapes = [weights[name].shape for name in names]
        if shapes == [moment.shape for moment in moments]:
            group = state["param_groups"][0]
            beta = group["betas"][0] if "betas" in group else group["momentum"]
            return Checkpoint(weights, dict(zip(names, moments, strict=True)), float(beta))
    return Checkpoint(weights, {})
