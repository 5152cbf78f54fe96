"""Attention over prompts that several samples share.

The keys and values of a prompt are stored once for all its samples; each sample adds a short
suffix. A decode step multiplies the queries of all samples of a prompt with its keys in one
product, so a group of eight reads the prompt from memory once, not eight times.

It replaces the attention function of any model that looks it up in transformers' table;
`prompt_sharing` checks at start-up whether a given model does and gets the same logits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from transformers.cache_utils import Cache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

if TYPE_CHECKING:
    from torch import nn

NAME = "tokengym_shared_prompt"


@dataclass
class Prefill:
    """A forward pass over new tokens, each row after a past of its own (or none).

    Attributes:
        past_keys: [layers, R, kv_heads, P, head_dim], or None without a past.
        past_values: the same shape.
        mask: bool [R, 1, T, P + T], which keys a new token sees; None without a past.
        keys: new keys by layer, [R, kv_heads, T, head_dim]; filled by the pass.
        values: the same shape.
    """

    past_keys: torch.Tensor | None = None
    past_values: torch.Tensor | None = None
    mask: torch.Tensor | None = None
    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [R, heads, T, head_dim] in and out."""
        self.keys.append(key)
        self.values.append(value)
        if self.past_keys is None or self.past_values is None:
            return F.scaled_dot_product_attention(
                query, key, value, is_causal=True, scale=scale, enable_gqa=True
            )
        return F.scaled_dot_product_attention(
            query,
            torch.cat([self.past_keys[layer], key], dim=2),
            torch.cat([self.past_values[layer], value], dim=2),
            attn_mask=self.mask,
            scale=scale,
            enable_gqa=True,
        )


@dataclass
class Decode:
    """One new token for each of R samples of G prompts.

    Attributes:
        prompt_keys: [layers, G, kv_heads, P, head_dim].
        prompt_values: the same shape.
        prompt_mask: float [G, 1, 1, P] added to the scores, or None if all prompts have length P.
        suffix_keys: [layers, R, kv_heads, capacity, head_dim]; the pass writes the new token.
        suffix_values: the same shape.
        suffix_mask: float [R, 1, 1, T] added to the scores, or None if all suffixes have length T.
        cursor: int64 [R], where each sample's new token goes.
        filled: T, the longest suffix with the new token.
        slots: int64 [G * S], the sample in each place of the group layout (0 where empty), or
            None if samples lie in it as they are.
        places: int64 [R], each sample's place in the group layout, or None likewise.
        group_size: S.
    """

    prompt_keys: torch.Tensor
    prompt_values: torch.Tensor
    prompt_mask: torch.Tensor | None
    suffix_keys: torch.Tensor
    suffix_values: torch.Tensor
    suffix_mask: torch.Tensor | None
    cursor: torch.Tensor
    filled: int
    slots: torch.Tensor | None
    places: torch.Tensor | None
    group_size: int

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [R, heads, 1, head_dim] in and out."""
        rows, heads, _, width = query.shape
        kv_heads = key.shape[1]
        repeat = heads // kv_heads
        groups, size = self.prompt_keys.shape[1], self.group_size
        line = torch.arange(rows, device=query.device)
        own_keys, own_values = self.suffix_keys[layer], self.suffix_values[layer]
        own_keys[line, :, self.cursor] = key[:, :, 0]
        own_values[line, :, self.cursor] = value[:, :, 0]
        own_keys, own_values = own_keys[:, :, : self.filled], own_values[:, :, : self.filled]

        # Consecutive query heads share a key head, as in transformers' repeat_kv.
        queries = query.reshape(rows, kv_heads, repeat, width) * scale
        own = queries @ own_keys.transpose(-1, -2)
        if self.suffix_mask is not None:
            own = own + self.suffix_mask
        shared = self._grouped(queries, groups, size) @ self.prompt_keys[layer].transpose(-1, -2)
        if self.prompt_mask is not None:
            shared = shared + self.prompt_mask
        prompt = shared.shape[-1]
        scores = torch.cat([shared, self._grouped(own, groups, size)], dim=-1)
        weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
        mixed = self._ungrouped(weights[..., :prompt] @ self.prompt_values[layer], groups, size)
        mixed = mixed + self._ungrouped(weights[..., prompt:], groups, size) @ own_values
        return mixed.reshape(rows, heads, 1, width)

    def _grouped(self, tensor: torch.Tensor, groups: int, size: int) -> torch.Tensor:
        """[R, kv_heads, repeat, X] to [G, kv_heads, S * repeat, X]."""
        if self.slots is not None:
            tensor = tensor.index_select(0, self.slots)
        _, kv_heads, repeat, last = tensor.shape
        tensor = tensor.view(groups, size, kv_heads, repeat, last).transpose(1, 2)
        return tensor.reshape(groups, kv_heads, size * repeat, last)

    def _ungrouped(self, tensor: torch.Tensor, groups: int, size: int) -> torch.Tensor:
        """The inverse of `_grouped`."""
        _, kv_heads, wide, last = tensor.shape
        tensor = tensor.view(groups, kv_heads, size, wide // size, last).transpose(1, 2)
        tensor = tensor.reshape(groups * size, kv_heads, wide // size, last)
        return tensor if self.places is None else tensor.index_select(0, self.places)


class PassThroughCache(Cache):
    """A cache that stores nothing: keys and values pass through to the attention function."""

    def __init__(self) -> None:
        super().__init__(layers=[])

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        layer_idx: int,
        *_args: Any,
        **_kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what came in."""
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Return 0: positions are always explicit, so no past is reported."""
        return 0


# The pass in progress. The compute thread is the only one that runs models.
_running: list[Prefill | Decode] = []


def run_pass(model: Any, state: Prefill | Decode, ids: torch.Tensor, at: torch.Tensor) -> Any:
    """Run `model` over token ids [R, T] at positions [R, T] with `state` as its attention."""
    _running.append(state)
    try:
        return model(
            input_ids=ids,
            position_ids=at,
            # Four dimensions tell transformers that the mask is ready; it is never read.
            attention_mask=torch.zeros(1, 1, 1, 1, device=ids.device, dtype=model.dtype),
            past_key_values=PassThroughCache(),
            use_cache=True,
        ).logits
    finally:
        _running.pop()


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
    state = _running[-1]
    output = state.attend(int(module.layer_idx), query, key, value, scale)  # type: ignore[arg-type]
    return output.transpose(1, 2).contiguous(), None


ALL_ATTENTION_FUNCTIONS.register(NAME, _attention)
