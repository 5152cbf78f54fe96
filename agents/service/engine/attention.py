"""Our own attention: over packed sequences in training, over kept keys in sampling.

These states replace the attention function of any model that looks it up in transformers' table;
`check_attention` in `served_model` checks that a model does, and gets the same logits.

A packed row holds groups of sequences, one after another without padding. The sequences of a group
begin with one prompt, which is computed once.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAME = "tokengym_kept_keys"
DENSE = 0.75
"""Share of slots in use from which on all are computed side by side, idle ones too."""


class Group(NamedTuple):
    """Positions of sequences in a packed row: of the prompt they share, and of each one's rest."""

    prompt: slice
    rests: Sequence[slice]


class Layer(NamedTuple):
    """A layer's number, the scale of its products, and how many positions a query sees, if few.

    A query sees its own position and those before it, within a window the last ones only.
    """

    number: int
    scale: float
    window: int | None = None


class AttentionState(Protocol):
    """Keys and values that a forward pass attends to."""

    def attend(self, layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One layer: query [R, heads, T, head_dim], key and value [R, kv_heads, T, head_dim]."""
        ...


@dataclass(frozen=True)
class Packed:
    """A forward pass over groups that cover a row, for training and for scores."""

    groups: Sequence[Group]

    def attend(self, layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One layer: [1, heads, N, head_dim] out."""

        def own(prompt: slice, rest: slice) -> Tensor:
            # Tokens after its prompt need not be copied.
            whole = [slice(prompt.start, rest.stop)]
            parts = whole if prompt.stop == rest.start else [prompt, rest]
            k, v = (torch.cat([one[:, :, at] for at in parts], 2) for one in (key, value))
            return _causal(layer, query[:, :, rest], k, v)

        outputs: list[Tensor] = []
        for prompt, rests in self.groups:
            if prompt.stop > prompt.start:
                outputs.append(own(slice(prompt.start, prompt.start), prompt))
            outputs += [own(prompt, rest) for rest in rests]
        return torch.cat(outputs, 2)


@dataclass(frozen=True)
class KeptPass:
    """A forward pass over new tokens of several slots, laid out one after another.

    Attributes:
        states: keys and values by layer, [2, slots, kv_heads, room, head_dim]; written by the pass.
        slots: of each.
        starts: how many tokens each slot holds before.
        counts: how many are new.
    """

    states: Sequence[Tensor]
    slots: Sequence[int]
    starts: Sequence[int]
    counts: Sequence[int]

    def attend(self, layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One layer: [1, heads, N, head_dim] out."""
        each = (part[0].split(list(self.counts), 1) for part in (query, key, value))
        parts: list[Tensor] = []
        for slot, start, q, k, v in zip(self.slots, self.starts, *each, strict=True):
            kept = self.states[layer.number][:, slot, :, : start + k.shape[1]]
            kept[:, :, start:] = torch.stack([k, v])
            parts.append(_causal(layer, q[None], *kept[:, None]))
        return torch.cat(parts, 2)


@dataclass(frozen=True)
class Decoding:
    """A forward pass over one new token for each of R slots.

    Attributes:
        states: as in `KeptPass`.
        slots: int64 [R] of each.
        starts: int64 [R], how many tokens each slot holds before.
        apart: whether each row attends by itself, so that no other changes a bit of it.
    """

    states: Sequence[Tensor]
    slots: NDArray[np.int64]
    starts: NDArray[np.int64]
    apart: bool = False

    def attend(self, layer: Layer, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """One layer: [M, heads, 1, head_dim] in and out; what lies after the R rows is idle."""
        states, rows = self.states[layer.number], len(self.slots)
        slots, starts = (
            torch.from_numpy(each).to(query.device) for each in (self.slots, self.starts)
        )
        states[0][slots, :, starts] = key[:rows, :, 0]
        states[1][slots, :, starts] = value[:rows, :, 0]
        # Queries that share a key head are rows of one product.
        queries = query[:rows].reshape(rows, states.shape[2], -1, query.shape[-1])
        first = np.maximum(self.starts + 1 - (layer.window or self.starts.max() + 1), 0)
        if self.apart or rows < DENSE * (self.slots.max() + 1 - self.slots.min()):
            each = zip(queries[:, None], self.slots, first, self.starts + 1, strict=True)
            seen = ((q, states[:, slot, None, :, start:stop]) for q, slot, start, stop in each)
            mixed = torch.cat(
                [F.scaled_dot_product_attention(q, k, v, scale=layer.scale) for q, (k, v) in seen]
            )
        else:
            mixed = self._together(queries, states, first, layer.scale)
        return F.pad(mixed.view(rows, *query.shape[1:]), (0, 0, 0, 0, 0, 0, 0, len(query) - rows))

    def _together(
        self, queries: Tensor, states: Tensor, starts: NDArray[np.int64], scale: float
    ) -> Tensor:
        """Attend in all slots from the first to the last one: idle ones cost less than a copy.

        Args:
            queries: [R, kv_heads, queries of each, head_dim].
            states: of the layer.
            starts: int64 [R], the first position that each sees.
            scale: of the products.
        """
        low, high = int(self.slots.min()), int(self.slots.max()) + 1
        # An idle slot has one position to see, or its weights would be no numbers.
        bounds = np.tile([[0], [1]], high - low)
        bounds[:, self.slots - low] = starts, self.starts + 1
        at = torch.from_numpy(self.slots - low).to(queries.device)
        spread = queries.new_zeros(high - low, *queries.shape[1:]).index_copy_(0, at, queries)
        place = np.arange(int(self.starts.max()) + 1)
        hidden = (place < bounds[0, :, None]) | (place >= bounds[1, :, None])
        mask = spread.new_zeros(hidden.shape).masked_fill_(
            torch.from_numpy(hidden).to(spread.device), -torch.inf
        )
        keys, values = states[:, low:high, :, : len(place)]
        mixed = F.scaled_dot_product_attention(
            spread, keys, values, attn_mask=mask[:, None, None], scale=scale
        )
        return mixed.index_select(0, at)


def _causal(layer: Layer, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attend from the last n of T positions: [1, heads, n, head_dim] out.

    Args:
        layer: the layer.
        q: [1, heads, n, head_dim].
        k: [1, kv_heads, T, head_dim].
        v: the same.
    """
    count, length = q.shape[2], k.shape[2]
    if count == length and (layer.window is None or length <= layer.window):
        # The mask is then what the function makes by itself, faster.
        return F.scaled_dot_product_attention(
            q, k, v, is_causal=count > 1, scale=layer.scale, enable_gqa=True
        )
    mask = q.new_full((count, length), -torch.inf).triu_(length - count + 1)
    if layer.window is not None:
        mask += q.new_full((count, length), -torch.inf).tril_(length - count - layer.window)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, scale=layer.scale, enable_gqa=True
    )


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


def hidden_states(model: Any, ids: Tensor, at: Tensor) -> Tensor:
    """Run the layers of `model` over token ids [R, T] at positions [R, T]; [R, T, hidden]."""
    hidden: Tensor = model.base_model(
        input_ids=ids,
        position_ids=at,
        # Four dimensions tell transformers that the mask is ready; it is never read.
        attention_mask=torch.zeros(1, 1, 1, 1, device=ids.device, dtype=model.dtype),
        use_cache=False,
    ).last_hidden_state
    return hidden


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_extra: Any,
) -> tuple[Tensor, None]:
    if softcap is not None or s_aux is not None:
        raise NotImplementedError("its attention has capped products or sinks")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    layer = Layer(int(module.layer_idx), scale, sliding_window)  # type: ignore[arg-type]
    output = _running[-1].attend(layer, query, key, value)
    return output.transpose(1, 2).to(query.dtype).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
