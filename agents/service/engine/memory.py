"""Estimates of the memory that work on a model takes, and the limits that a service keeps."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from tokengym.agents.service.engine.attention import Group, Packed, attending, hidden_states
from tokengym.agents.service.engine.linear import Adapter, lora_layers

PROBE_TOKENS = 64
# Splitting a batch into smaller parts than this gains nothing.
LEAST_BATCH = 1 << 26
# Memory is divided in steps: a process holds a few MiB more or less at its start, and that must not
# change how batches are cut, and with it the order of sums.
STEP = 1 << 28
DEFAULT_MEMORY = 4 << 30
# Before and after a batch of at least this many bytes, free pages are returned to the system.
LARGE_BATCH = 1 << 28
# The share of the free memory that batches and sequences divide.
DIVIDED = 1 / 2
# The share of it that training runs, requests and results of clients may hold, and the share of
# sampled adapters. The rest is for gradients of a backward pass, buffers and gaps in the heap.
CLIENTS, ADAPTERS = 1 / 4, 1 / 16


class ChunkSizes(NamedTuple):
    """Sizes of the pieces that work is cut into.

    Attributes:
        logits: most bytes of logits at once; a few copies of them are made.
        batch: most bytes of activations of one batch.
        positions: most positions of one pass over training data or prompts.
    """

    logits: int
    batch: int
    positions: int


# Larger pieces are no faster on a processor, and others wait for them.
PROCESSOR = ChunkSizes(logits=1 << 26, batch=1 << 30, positions=1 << 12)
# A GPU spends more time on starting small pieces than on computing them.
ACCELERATOR = ChunkSizes(logits=1 << 29, batch=1 << 34, positions=1 << 15)


def pieces_for(device: torch.device) -> ChunkSizes:
    """Return the sizes that suit a device."""
    return PROCESSOR if device.type == "cpu" else ACCELERATOR


def divided(spare: int, batch: int) -> tuple[int, int]:
    """Return the bytes for a batch's activations, and for the keys and values of conversations.

    Of the spare memory, or of a small minimum: without memory work is split, not refused. Sampling
    may use a batch's share as well: a client that does not sample while it trains has one of the
    two at a time. One that does exceeds what is free by a batch at most.

    Args:
        spare: bytes.
        batch: bytes that a batch never exceeds.
    """
    free = max(4 * LEAST_BATCH, int(DIVIDED * spare) // STEP * STEP)
    return min(free // 3, batch), free


def spare_bytes(device: torch.device, memory: float | None) -> int:
    """Return the bytes that work on a device may take besides what this process holds.

    Args:
        device: the device.
        memory: what the process may hold in all, in GiB; `None` for what suits the device.
    """
    if memory is None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0] * 9 // 10
    limit = DEFAULT_MEMORY if memory is None else int(memory * (1 << 30))
    return limit - resident_bytes(device)


def clients_bytes(spare: int) -> int:
    """Return how many of the spare bytes clients may hold; see `CLIENTS`."""
    return max(4 * LEAST_BATCH, int(CLIENTS * spare))


def spill_bytes(folder: Path) -> int:
    """Return how many bytes of files may take what does not fit in memory."""
    return shutil.disk_usage(folder).free // 4


def resident_bytes(device: torch.device) -> int:
    """Return the memory that this process holds: on a GPU the GPU's, else the machine's."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    return psutil.Process().memory_info().rss


def activation_bytes(model: Any) -> int:
    """Measure the activations that a backward pass keeps, in bytes for each position.

    An adapter on every layer is assumed. The keys of a shared prompt are counted once, though each
    sequence keeps a copy.
    """
    saved: dict[int, int] = {}
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    length = min(PROBE_TOKENS, getattr(model.config, "max_position_embeddings", PROBE_TOKENS))
    ids = torch.zeros(1, length, dtype=torch.long, device=model.device)
    layers = lora_layers(model).values()
    former = [layer.adapter for layer in layers]
    for layer in layers:
        a, b = layer.weight.new_zeros(1, layer.in_features), layer.weight.new_zeros(1, 1)
        layer.adapter = Adapter(a.requires_grad_(), b.expand(layer.out_features, 1), 1.0)
    row = Packed([Group(slice(0, 0), [slice(0, length)])])
    try:
        hooks = saved_tensors_hooks(keep, lambda tensor: tensor)
        with torch.enable_grad(), attending(model, row), hooks:
            result = hidden_states(model, ids, torch.arange(length, device=model.device)[None])
    finally:
        for layer, adapter in zip(layers, former, strict=True):
            layer.adapter = adapter
    del result
    return sum(saved.values()) // length


@contextmanager
def recomputing(model: Any) -> Iterator[None]:
    """Within the block, layers keep only their input for the backward pass inside it."""
    count = int(model.config.get_text_config().num_hidden_layers)
    (layers,) = (
        module
        for module in model.base_model.children()
        if isinstance(module, nn.ModuleList) and len(module) == count
    )
    for layer in layers:
        layer.forward = partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def cache_shape(model: Any) -> tuple[int, int, int]:
    """Return the layers of a model, and the heads and width of a token's keys in each."""
    config = model.config.get_text_config()
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(config.num_hidden_layers), int(heads), int(width)


def cache_bytes(model: Any) -> int:
    """Return the size in bytes of one token's keys and values."""
    return 2 * int(model.dtype.itemsize) * math.prod(cache_shape(model))
