"""A Hugging Face causal language model read from a directory: weights, tokenizer and limits.

Two modules share every tensor: `trained` carries the adapter that is trained, `sampled` the one
that is sampled from.
"""

import copy
import hashlib
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from tokengym.agents.service.config import check_model_directory
from tokengym.agents.service.engine.linear import replace_linear_layers
from tokengym.agents.service.engine.norm import speed_up_norms
from tokengym.agents.service.errors import ModelDirectoryError

DEFAULT_CONTEXT = 4096
LARGE = 1 << 25
"""Parameters from which on products take most of the time."""
FINGERPRINT_BYTES = 1 << 16
FIXED_ROPE = frozenset({"default", "linear", "llama3", "yarn"})
"""Types of rotary embeddings whose angles do not depend on the length of a sequence."""


class BaseModel:
    """A served base model: safetensors weights, and code of its own only if trusted.

    Args:
        directory: where it is.
        device: a torch device, or `auto`.
        precision: `float32`, `bfloat16` or `auto`.
        trust_remote_code: whether code that comes with it runs.

    Attributes:
        name: the name clients use, a path.
        trained: the module that training runs on.
        sampled: a second module over the same tensors.
        tokenizer: the tokenizer of the directory.
        eos: token ids that end a sample when the request names no stop.
        context: longest sequence, in tokens.
        vocabulary: number of token ids.
        device: where the tensors live.
        precision: `float32` or `bfloat16`.
        fingerprint: hash of the weights' shapes and first bytes; a checkpoint fits if it is equal.
        missing: int64 [M], ids of the head that the tokenizer lacks; they are never sampled.

    Raises:
        ModelDirectoryError: if the directory is missing or does not hold a causal language model
            and its tokenizer.
    """

    def __init__(
        self,
        directory: Path,
        device: str = "auto",
        precision: str = "auto",
        trust_remote_code: bool = False,
    ) -> None:
        check_model_directory(directory, trust_remote_code=trust_remote_code)
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        self.name, self.device = served_name(directory), torch.device(device)
        given: dict[str, Any] = {"local_files_only": True, "trust_remote_code": trust_remote_code}
        try:
            self.tokenizer: Any = AutoTokenizer.from_pretrained(directory, **given)
            model = _read_model(directory, given)
        except Exception as error:  # of a damaged file anything may be raised
            reason = " ".join(str(error).split())[:300]
            raise ModelDirectoryError(
                f"model directory must hold a causal language model and its tokenizer, "
                f"{str(directory)!r} does not: {reason}"
            ) from error
        model.eval().requires_grad_(False)
        self.fingerprint = _fingerprint(model)
        if precision == "auto":
            precision = "bfloat16" if _gains_by_bfloat16(model, self.device) else "float32"
        self.precision = precision
        model.to(self.device, torch.bfloat16 if precision == "bfloat16" else torch.float32)
        replace_linear_layers(model)
        if precision == "float32":
            speed_up_norms(model)
        self.context = int(
            getattr(model.config, "max_position_embeddings", None) or DEFAULT_CONTEXT
        )
        _cache_rotary_tables(model, self.context)
        self.trained: nn.Module = model
        self.sampled = share_tensors(model)
        self.eos = _end_tokens(model, self.tokenizer)
        self.vocabulary = int(model.get_input_embeddings().weight.shape[0])
        self.missing = _missing_ids(model, self.tokenizer, self.device)

    def decode(self, tokens: list[int], *, special: bool = True) -> str:
        """Return the text of tokens; special tokens are left out unless `special`."""
        text: str = self.tokenizer.decode(tokens, skip_special_tokens=not special)
        return text


def served_name(directory: Path) -> str:
    """Return the name a directory is served under: a path where the SDK finds the tokenizer.

    The SDK reads a name with exactly two slashes as `organisation/model/variant` and drops the
    last part, so such a path gets a redundant third slash.
    """
    name = str(directory)
    return name.replace("/", "/./", 1) if name.count("/") == 2 else name


def share_tensors(model: nn.Module) -> nn.Module:
    """Return a second module over the same parameter and buffer tensors."""
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    return copy.deepcopy(model, memo=dict(shared))


def logits_of(model: Any, hidden: torch.Tensor) -> torch.Tensor:
    """Return the float32 logits [N, vocab] of the last layer's hidden states [N, hidden].

    The model itself computes them, its layers replaced by their result, so that whatever an
    architecture does to its logits (scaling, capping) is done here too.
    """
    layers = model.base_model
    states = _LayersOutput(hidden.unsqueeze(0))
    layers.forward = lambda *_args, **_kwargs: states
    try:
        logits: torch.Tensor = model(input_ids=None, use_cache=False).logits
    finally:
        del layers.forward
    return logits[0].float()


class _LayersOutput(NamedTuple):
    """The output of a model's layers, whatever its architecture calls the other outputs."""

    last_hidden_state: torch.Tensor

    def __getattr__(self, _name: str) -> None:
        return None


def _read_model(directory: Path, given: Mapping[str, Any]) -> Any:
    if not sys.stderr.isatty():  # a bar is no line of a log
        logging.disable_progress_bar()
    how = {"dtype": torch.float32, "use_safetensors": True, "output_loading_info": True, **given}
    loaded: Any = AutoModelForCausalLM.from_pretrained(directory, **how)
    model, notes = loaded
    if missing := sorted(notes["missing_keys"]):
        raise ValueError(f"its weights lack {missing[0]!r}")
    return model


def _gains_by_bfloat16(model: nn.Module, device: torch.device) -> bool:
    """Return whether products of bfloat16 numbers make the model faster on this device."""
    if device.type != "cpu":
        return True
    # Older versions of torch do not report what the processor can do.
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    multiplies = capabilities.get("avx512_bf16") or capabilities.get("amx_bf16")
    return bool(multiplies) and sum(map(torch.numel, model.parameters())) >= LARGE


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    named = (getattr(model, "generation_config", None), model.config, tokenizer)
    # Each names one token, several or none.
    ends = [getattr(one, "eos_token_id", None) for one in named]
    return frozenset(int(t) for end in ends if end is not None for t in np.atleast_1d(end))


def _missing_ids(model: Any, tokenizer: Any, device: torch.device) -> torch.Tensor | None:
    """Return the ids of a model's head that a tokenizer has no token for, None without any."""
    named = set(tokenizer.get_vocab().values())
    missing = [i for i in range(model.get_input_embeddings().weight.shape[0]) if i not in named]
    # Whose tokenizer names none of them says nothing about them.
    return torch.tensor(missing, device=device) if missing and named else None


def _cache_rotary_tables(model: Any, context: int) -> None:
    """Let rotary embeddings look angles up that depend on nothing but the position."""
    for module in model.modules():
        takes = list(inspect.signature(module.forward).parameters)
        if takes == ["x", "position_ids"] and module.rope_type in FIXED_ROPE:
            at = torch.arange(context, device=model.device)[None]
            cosines, sines = module(torch.empty(0, dtype=model.dtype, device=model.device), at)
            module.forward = _rows_of(cosines[0], sines[0])


def _rows_of(cosines: torch.Tensor, sines: torch.Tensor) -> Any:
    """Return a function from positions [R, T] to the rows of two tables [context, head_dim]."""
    return lambda _x, position_ids: (cosines[position_ids], sines[position_ids])


def _fingerprint(model: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.named_parameters():
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        head = tensor.detach().flatten()[:FINGERPRINT_BYTES].float().cpu().contiguous()
        digest.update(head.numpy().tobytes())
    return digest.hexdigest()[:32]
