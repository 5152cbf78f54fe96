"""Our own attention: over packed sequences in training, over kept keys in sampling.

These states replace the attention function of any model that looks it up in transformers' table;
`fits` in `base_model` checks when a model is read whether it does, and gets the same logits.

A packed row holds groups of sequences, one after another without padding. The sequences of a group
begin with one prompt, which is computed once. Their attention is put together from parts without a
mask: to the prompt in full, and to a sequence's own positions causally. With the logarithm of the
sum of all exponentials, which the parts of a query add up to, each part has its own gradient.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAME = "tokengym_kept_keys"
DENSE = 0.75
"""Share of slots in use from which on all are computed side by side, idle ones too."""


class Group(NamedTuple):
    """Positions of sequences in a packed row: of the prompt they share, and of each one's rest."""

    prompt: slice
    rests: Sequence[slice]


class AttentionState(Protocol):
    """Keys and values that a forward pass attends to."""

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: query [R, heads, T, head_dim], key and value [R, kv_heads, T, head_dim]."""
        ...


@dataclass(frozen=True)
class Packed:
    """A forward pass over groups that cover a row, for training and for scores."""

    groups: Sequence[Group]

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [1, heads, N, head_dim] out."""
        key, value = (_for_each_head(part, query.shape[1]) for part in (key, value))
        apply: Any = _Attention.apply  # torch leaves it untyped
        output: torch.Tensor = apply(query, key, value, self.groups, scale)
        return output


@dataclass(frozen=True)
class KeptPass:
    """A forward pass over new tokens of several slots, laid out one after another.

    Attributes:
        states: keys and values by layer, [2, slots, kv_heads, room, head_dim]; written by the pass.
        slots: of each.
        starts: how many tokens each slot holds before.
        counts: how many are new.
    """

    states: Sequence[torch.Tensor]
    slots: Sequence[int]
    starts: Sequence[int]
    counts: Sequence[int]

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [1, heads, N, head_dim] out."""
        each = (part[0].split(list(self.counts), 1) for part in (query, key, value))
        new = zip(*each, strict=True)
        parts: list[torch.Tensor] = []
        for slot, start, (q, k, v) in zip(self.slots, self.starts, new, strict=True):
            kept = self.states[layer][:, slot, :, : start + k.shape[1]]
            kept[:, :, start:] = torch.stack([k, v])
            keys, values = (_for_each_head(part[None], len(q))[0] for part in kept)
            # Without keys before them the mask is what the function makes by itself, faster.
            mask = None if start == 0 else _later_hidden(q.shape[1], keys.shape[1], q)
            causal = start == 0 and q.shape[1] > 1
            out = F.scaled_dot_product_attention(
                q[None], keys[None], values[None], attn_mask=mask, is_causal=causal, scale=scale
            )
            parts.append(out[0])
        return torch.cat(parts, 1)[None]


@dataclass(frozen=True)
class Decoding:
    """A forward pass over one new token for each of R slots.

    Attributes:
        states: as in `KeptPass`.
        slots: int64 [R] of each.
        starts: int64 [R], how many tokens each slot holds before.
        apart: whether each row attends by itself, so that no other changes a bit of it.
    """

    states: Sequence[torch.Tensor]
    slots: NDArray[np.int64]
    starts: NDArray[np.int64]
    apart: bool = False

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [M, heads, 1, head_dim] in and out; what lies after the R rows is idle."""
        states, rows = self.states[layer], len(self.slots)
        slots, starts = (
            torch.from_numpy(each).to(query.device) for each in (self.slots, self.starts)
        )
        states[0][slots, :, starts] = key[:rows, :, 0]
        states[1][slots, :, starts] = value[:rows, :, 0]
        # Queries that share a key head are rows of one product.
        queries = query[:rows].reshape(rows, states.shape[2], -1, query.shape[-1])
        spread = int(self.slots.max()) + 1 - int(self.slots.min())
        if self.apart or rows < DENSE * spread:
            each = zip(queries[:, None], self.slots, self.starts, strict=True)
            seen = ((q, states[:, slot, None, :, : start + 1]) for q, slot, start in each)
            mixed = torch.cat(
                [F.scaled_dot_product_attention(q, k, v, scale=scale) for q, (k, v) in seen]
            )
        else:
            mixed = self._together(queries, states, scale)
        return F.pad(mixed.view(rows, *query.shape[1:]), (0, 0, 0, 0, 0, 0, 0, len(query) - rows))

    def _together(self, queries: torch.Tensor, states: torch.Tensor, scale: float) -> torch.Tensor:
        """Attend in all slots from the first to the last one: idle ones cost less than a copy."""
        first, last = int(self.slots.min()), int(self.slots.max()) + 1
        longest = int(self.starts.max()) + 1
        ends = np.ones(last - first, np.int64)
        ends[self.slots - first] = self.starts + 1
        at = torch.from_numpy(self.slots - first).to(queries.device)
        spread = queries.new_zeros(len(ends), *queries.shape[1:]).index_copy_(0, at, queries)
        seen = torch.arange(longest) < torch.from_numpy(ends)[:, None, None, None]
        mask = spread.new_zeros(seen.shape).masked_fill_(~seen.to(spread.device), -torch.inf)
        keys, values = states[:, first:last, :, :longest]
        mixed = F.scaled_dot_product_attention(spread, keys, values, attn_mask=mask, scale=scale)
        return mixed.index_select(0, at)


class _Attention(torch.autograd.Function):
    """Attention over groups, [1, heads, N, head_dim] each."""

    @staticmethod
    def forward(
        ctx: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        groups: Sequence[Group],
        scale: float,
    ) -> torch.Tensor:
        # As torch lays the output of its own attention out: heads of a position side by side.
        output = torch.empty_like(query.transpose(1, 2), memory_format=torch.contiguous_format)
        output = output.transpose(1, 2)
        total = query.new_empty(query.shape[:3], dtype=torch.float32)
        for at, seen, causal, first in _parts(groups):
            operands = query[:, :, at], key[:, :, seen], value[:, :, seen]
            out, sums = _part(*operands, causal, scale)
            if not first:
                both = torch.logaddexp(total[:, :, at], sums)
                former, added = (total[:, :, at] - both).exp(), (sums - both).exp()
                out = output[:, :, at] * former[..., None] + out * added[..., None]
                sums = both
            output[:, :, at], total[:, :, at] = out, sums
        ctx.save_for_backward(query, key, value, output, total)
        ctx.groups, ctx.scale = groups, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
        query, key, value, output, total = ctx.saved_tensors
        grads = [torch.zeros_like(part) for part in (query, key, value)]
        for at, seen, causal, _ in _parts(ctx.groups):
            own = query[:, :, at], key[:, :, seen], value[:, :, seen]
            ends = output[:, :, at], total[:, :, at]
            found = _part_backward(gradients[0][:, :, at], *own, *ends, causal, ctx.scale)
            for whole, place, part in zip(grads, (at, seen, seen), found, strict=True):
                whole[:, :, place] += part
        return *grads, None, None


def _parts(groups: Sequence[Group]) -> Iterator[tuple[slice, slice, bool, bool]]:
    """Yield queries, the keys they see, whether causally, and whether it is their first part."""
    for prompt, rests in groups:
        shared = prompt.stop > prompt.start
        if shared:
            yield prompt, prompt, True, True
            yield slice(rests[0].start, rests[-1].stop), prompt, False, True
        for rest in rests:
            yield rest, rest, True, not shared


def _part(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a part's output, and the logarithm of its sum of exponentials [1, heads, m]."""
    if q.device.type == "cpu":
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        out, sums = flash(q, k, v, 0.0, causal, scale=scale)
        return out, sums
    scores = _scores(q, k, causal, scale)
    sums = scores.logsumexp(-1)
    return (scores - sums[..., None]).exp().to(v.dtype) @ v, sums


def _part_backward(
    upstream: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    output: torch.Tensor,
    total: torch.Tensor,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, ...]:
    """Return a part's gradients of q, k and v, given the output and sum of all parts."""
    if q.device.type == "cpu":
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        gradients: tuple[torch.Tensor, ...] = flash(
            upstream, q, k, v, output, total, 0.0, causal, scale=scale
        )
        return gradients
    weights = (_scores(q, k, causal, scale) - total[..., None]).exp().to(v.dtype)
    inner = upstream @ v.transpose(-1, -2) - (upstream * output).sum(-1, keepdim=True)
    inner = weights * inner * scale
    transposed = weights.transpose(-1, -2) @ upstream
    return inner @ k, inner.transpose(-1, -2) @ q, transposed


def _scores(q: torch.Tensor, k: torch.Tensor, causal: bool, scale: float) -> torch.Tensor:
    scores = (q @ k.transpose(-1, -2)).float() * scale
    return scores + _later_hidden(q.shape[2], k.shape[2], scores) if causal else scores


def _later_hidden(queries: int, keys: int, like: torch.Tensor) -> torch.Tensor:
    """Return a mask [queries, keys] that hides what comes after the last `queries` positions."""
    mask = torch.full((queries, keys), -torch.inf, dtype=like.dtype, device=like.device)
    return mask.triu_(keys - queries + 1)


def _for_each_head(part: torch.Tensor, heads: int) -> torch.Tensor:
    """Repeat keys or values [R, kv_heads, T, head_dim] for the query heads that share them."""
    repeat = heads // part.shape[1]
    return part if repeat == 1 else part.repeat_interleave(repeat, 1)


# The passes in progress. Only the compute thread runs models.
_running: list[AttentionState] = []


@contextmanager
def attending(model: Any, state: AttentionState) -> Iterator[None]:
    """Within the block, `model` computes attention by `state`.

    A backward pass that recomputes activations has to be inside the block too.
    """
    former = model.config._attn_implementation
    model.config._attn_implementation = NAME
    _running.append(state)
    try:
        yield
    finally:
        _running.pop()
        model.config._attn_implementation = former


def hidden_states(model: Any, ids: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Run the layers of `model` over token ids [R, T] at positions [R, T]; [R, T, hidden]."""
    hidden: torch.Tensor = model.base_model(
        input_ids=ids,
        position_ids=at,
        # Four dimensions tell transformers that the mask is ready; it is never read.
        attention_mask=torch.zeros(1, 1, 1, 1, device=ids.device, dtype=model.dtype),
        use_cache=False,
    ).last_hidden_state
    return hidden


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **_extra: Any,
) -> tuple[torch.Tensor, None]:
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = int(module.layer_idx)  # type: ignore[arg-type]
    output = _running[-1].attend(layer, query, key, value, scale)
    return output.transpose(1, 2).to(query.dtype).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
