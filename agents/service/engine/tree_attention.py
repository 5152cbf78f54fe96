"""Causal attention over sequences that share prefixes, laid out one after another without padding.

The positions are cut into blocks. The queries of a block see some earlier positions in full and
their own block under a mask, so hardly any score is computed that the mask would hide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention_dtype import (
    attention_weights,
    mixed_values,
    rows_round_alike,
)
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.compute_thread import pause


@dataclass(frozen=True)
class Block:
    """Queries that are computed together.

    Attributes:
        own: the positions of the queries.
        seen: int64 [W], the positions that all of them see, and then the block's own.
        mask: float32 [m, W], added to the scores: minus infinity where a query does not see one.
    """

    own: slice
    seen: torch.Tensor
    mask: torch.Tensor


def cut_blocks(
    runs: Sequence[tuple[NDArray[np.int64], slice]], device: torch.device
) -> list[Block]:
    """Cut runs of positions into blocks, on an accelerator short runs after one prefix into one.

    A processor starts small pieces fast, and adds up the keys of a run of its own in the order of
    their positions.

    Args:
        runs: the positions that each run sees in full and the run's own, one run after another; a
            position sees those of its run that are not later.
        device: where the masks go.
    """
    most = pieces_for(device).queries
    blocks: list[Block] = []
    group: list[slice] = []
    seen = np.empty(0, np.int64)
    for prefix, run in runs:
        for start in range(run.start, run.stop, most):
            piece = slice(start, min(start + most, run.stop))
            before = np.r_[prefix, run.start : start]
            joins = device.type != "cpu" and np.array_equal(before, seen)
            if group and not (joins and piece.stop - group[0].start <= most):
                blocks.append(_block(seen, group, device))
                group = []
            group.append(piece)
            seen = before
    if group:
        blocks.append(_block(seen, group, device))
    return blocks


def _block(seen: NDArray[np.int64], runs: list[slice], device: torch.device) -> Block:
    ahead = len(seen)
    own = slice(runs[0].start, runs[-1].stop)
    mask = torch.full((own.stop - own.start, ahead + own.stop - own.start), -torch.inf)
    mask[:, :ahead] = 0.0
    for run in runs:
        at = slice(run.start - own.start, run.stop - own.start)
        mask[at, ahead + at.start : ahead + at.stop].triu_(1)
    every = torch.from_numpy(np.r_[seen, own.start : own.stop])
    return Block(own, every.to(device), mask.to(device))


def tree_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: Sequence[Block],
    scale: float,
) -> torch.Tensor:
    """Attend over N positions, of the last M of which queries are given; softmax in float32.

    Values are weighted in the type of `query`. So are scores computed where products do not depend
    on how they are cut, else in float32.

    Args:
        query: [heads, M, head_dim].
        key: [kv_heads, N, head_dim]; consecutive query heads share one.
        value: [kv_heads, N, head_dim].
        blocks: which cover each of the M positions once.
        scale: factor of the scores.

    Returns:
        [heads, M, head_dim].
    """
    apply: Any = _TreeAttention.apply  # torch leaves it untyped
    output: torch.Tensor = apply(query, key.contiguous(), value.contiguous(), blocks, scale)
    return output


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        blocks: Sequence[Block],
        scale: float,
    ) -> torch.Tensor:
        alike = rows_round_alike(query.dtype, query.device)
        queries, keys = (query, key) if alike else (query.float(), key.float())
        output = torch.empty_like(query)
        ahead = key.shape[1] - query.shape[1]
        saved = []
        for block in blocks:
            pause()
            at = slice(block.own.start - ahead, block.own.stop - ahead)
            own = _grouped(queries[:, at], key)
            scores = own @ keys.index_select(1, block.seen).transpose(1, 2)
            scores = scores.view(len(query), -1, block.mask.shape[1])
            weights = attention_weights(scores, block.mask, scale).to(query.dtype)
            mixed = mixed_values(_grouped(weights, key), value.index_select(1, block.seen))
            output[:, at] = mixed.view(len(query), -1, query.shape[-1])
            if any(ctx.needs_input_grad):
                saved.append(weights)
        ctx.save_for_backward(query, key, value, *saved)
        ctx.blocks, ctx.scale = blocks, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        query, key, value, *saved = ctx.saved_tensors
        upstream, scaled = gradients[0], query * ctx.scale
        grad_query = torch.empty_like(query)
        grad_key, grad_value = (torch.zeros_like(key, dtype=torch.float32) for _ in range(2))
        for block, weights in zip(ctx.blocks, saved, strict=True):
            pause()
            out = _grouped(upstream[:, block.own], key)
            inner = (out @ value.index_select(1, block.seen).transpose(1, 2)).view_as(weights)
            # The gradient through softmax.
            inner = torch._softmax_backward_data(  # pyright: ignore[reportPrivateImportUsage]
                inner, weights, -1, weights.dtype
            )
            inner = _grouped(inner, key)
            mixed = inner @ key.index_select(1, block.seen)
            grad_query[:, block.own] = mixed.view(len(query), -1, query.shape[-1])
            queries = _grouped(scaled[:, block.own], key)
            for total, part in (
                (grad_key, inner.transpose(1, 2) @ queries),
                (grad_value, _grouped(weights, key).transpose(1, 2) @ out),
            ):
                total.index_add_(1, block.seen, part.float())
        return grad_query.mul_(ctx.scale), grad_key, grad_value, None, None


def _grouped(part: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Put the heads that share a key head into one matrix: [kv_heads, heads / kv_heads * m, X]."""
    return part.reshape(len(key), -1, part.shape[-1])
