"""Causal attention over sequences that share prefixes, laid out one after another without padding.

The positions are cut into blocks. The queries of a block see some earlier positions in full and
their own block under a mask, so hardly any score is computed that the mask would hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from tokengym.agents.service.engine.attention_dtype import sum_type
from tokengym.agents.service.engine.chunk_sizes import pieces_for
from tokengym.agents.service.engine.compute_thread import pause

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Block:
    """Queries that are computed together.

    Attributes:
        own: the positions of the queries.
        seen: positions that all of them see.
        mask: float32 [m, W], added to the scores: minus infinity where a query does not see one
            of the W positions, which are those that all see and then the block's own.
    """

    own: slice
    seen: tuple[slice, ...]
    mask: torch.Tensor


def cut_blocks(
    runs: Sequence[tuple[tuple[slice, ...], slice]], device: torch.device
) -> list[Block]:
    """Cut runs of positions into blocks, short runs after the same prefix into one.

    Args:
        runs: the positions that each run sees in full and the run's own, one run after another; a
            position sees those of its run that are not later.
        device: where the masks go.
    """
    most = pieces_for(device).queries
    blocks: list[Block] = []
    group: list[slice] = []
    seen: tuple[slice, ...] = ()
    for prefix, run in runs:
        for start in range(run.start, run.stop, most):
            piece = slice(start, min(start + most, run.stop))
            before = (*prefix, slice(run.start, start)) if start > run.start else prefix
            if group and (before != seen or piece.stop - group[0].start > most):
                blocks.append(_block(seen, group, device))
                group = []
            group.append(piece)
            seen = before
    if group:
        blocks.append(_block(seen, group, device))
    return blocks


def _block(seen: tuple[slice, ...], runs: list[slice], device: torch.device) -> Block:
    ahead = sum(where.stop - where.start for where in seen)
    own = slice(runs[0].start, runs[-1].stop)
    mask = torch.full((own.stop - own.start, ahead + own.stop - own.start), -torch.inf)
    mask[:, :ahead] = 0.0
    for run in runs:
        at = slice(run.start - own.start, run.stop - own.start)
        mask[at, ahead + at.start : ahead + at.stop].triu_(1)
    return Block(own, seen, mask.to(device))


def tree_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    blocks: Sequence[Block],
    scale: float,
) -> torch.Tensor:
    """Attend over N positions; scores and softmax in the type of `sum_type`.

    Values are weighted in float64 where that is its type, else in the type of `query`.

    Args:
        query: [heads, N, head_dim].
        key: [kv_heads, N, head_dim]; consecutive query heads share one.
        value: [kv_heads, N, head_dim].
        blocks: which cover each position once.
        scale: factor of the scores.

    Returns:
        [heads, N, head_dim].
    """
    apply: Any = _TreeAttention.apply  # torch leaves it untyped
    output: torch.Tensor = apply(query, key, value, blocks, scale)
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
        wide = sum_type(query.dtype, query.device)
        queries, keys = query.to(wide), key.to(wide)
        values = value.to(wide) if wide == torch.float64 else value
        output = torch.empty_like(query)
        saved = []
        for block in blocks:
            pause()
            own = _grouped(queries[:, block.own], key)
            scores = own @ _seen(keys, block).transpose(1, 2)
            scores = scores.view(len(query), -1, block.mask.shape[1])
            torch.add(block.mask, scores, alpha=scale, out=scores)
            weights = torch.softmax(scores, dim=-1).to(values.dtype)
            # Transposed, which is faster in float64.
            mixed = _seen(values, block).transpose(1, 2) @ _grouped(weights, key).transpose(1, 2)
            output[:, block.own] = mixed.transpose(1, 2).reshape(len(query), -1, query.shape[-1])
            if any(ctx.needs_input_grad):
                saved.append(weights.to(query.dtype))
        ctx.save_for_backward(query, key, value, *saved)
        ctx.blocks, ctx.scale = blocks, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        query, key, value, *saved = ctx.saved_tensors
        upstream = gradients[0]
        grad_query = torch.empty_like(query)
        grad_key, grad_value = (torch.zeros_like(key, dtype=torch.float32) for _ in range(2))
        for block, weights in zip(ctx.blocks, saved, strict=True):
            pause()
            out = _grouped(upstream[:, block.own], key)
            inner = (out @ _seen(value, block).transpose(1, 2)).view_as(weights)
            # The gradient through softmax.
            inner = torch._softmax_backward_data(  # pyright: ignore[reportPrivateImportUsage]
                inner, weights, -1, weights.dtype
            )
            inner = _grouped(inner, key)
            mixed = inner @ _seen(key, block)
            grad_query[:, block.own] = mixed.view(len(query), -1, query.shape[-1]) * ctx.scale
            queries = _grouped(query[:, block.own] * ctx.scale, key)
            _add_seen(grad_key, block, inner.transpose(1, 2) @ queries)
            _add_seen(grad_value, block, _grouped(weights, key).transpose(1, 2) @ out)
        return grad_query, grad_key, grad_value, None, None


def _grouped(part: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Put the heads that share a key head into one matrix: [kv_heads, heads / kv_heads * m, X]."""
    return part.reshape(len(key), -1, part.shape[-1])


def _seen(parts: torch.Tensor, block: Block) -> torch.Tensor:
    """Select what a block attends to from [kv_heads, N, X]: full positions, then its own."""
    return torch.cat([parts[:, where] for where in (*block.seen, block.own)], dim=1)


def _add_seen(total: torch.Tensor, block: Block, part: torch.Tensor) -> None:
    """Add to [kv_heads, N, X] the values of the positions that a block attends to."""
    at = 0
    for where in (*block.seen, block.own):
        total[:, where] += part[:, at : at + where.stop - where.start]
        at += where.stop - where.start
