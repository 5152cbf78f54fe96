"""Our own attention: packed rows, prompts shared by several samples, and decoding.

In training a row holds a prompt and several continuations. In sampling the keys and
values of a prompt are computed once. In float32, and on a GPU, they are stored once for all its
samples, and each sample adds a short suffix: a decode step multiplies the queries of all samples of
a prompt with its keys in one product, so a group of eight reads the prompt from memory once, not
eight times. In bfloat16 on a processor each sample has a copy, so that its keys lie in one order.

These states replace the attention function of any model that looks it up in transformers' table;
`trials` checks at start-up whether a given model does and gets the same logits. Keys
and values are kept in the type of the model, both in one tensor: [2, ...], keys first.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from tokengym.agents.service.engine.attention_dtype import TILE, added, attention_weights
from tokengym.agents.service.engine.tree_attention import Block, tree_attention

NAME = "tokengym_shared_prompt"


class AttentionState(Protocol):
    """What a forward pass attends to."""

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: query [R, heads, T, head_dim], key and value [R, kv_heads, T, head_dim]."""
        ...


@dataclass(frozen=True)
class Packed:
    """A forward pass over sequences laid out one after another, in one row."""

    blocks: Sequence[Block]

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [1, heads, N, head_dim] out."""
        return tree_attention(query[0], key[0], value[0], self.blocks, scale)[None]


@dataclass(frozen=True)
class Prefill(Packed):
    """The same over prompts, whose keys and values are wanted.

    Attributes:
        past: keys and values that come before, [2, layers, kv_heads, n, head_dim]; blocks count
            their positions first.
        states: the new ones by layer, [2, kv_heads, N, head_dim]; filled by the pass.
    """

    past: Sequence[torch.Tensor] = ()
    states: list[torch.Tensor] = field(default_factory=list)

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [1, heads, N, head_dim] in and out."""
        self.states.append(torch.cat([key, value]))
        parts = [*(states[:, layer] for states in self.past), self.states[-1]]
        keys, values = torch.cat(parts, dim=2)
        return tree_attention(query[0], keys, values, self.blocks, scale)[None]


@dataclass(frozen=True)
class Decode:
    """One new token for each of R rows, whose keys lie in N slots.

    A slot holds a row's keys from the first one on, in the order of their positions; or those that
    follow its prompt, where each group of N / G slots shares one.

    Attributes:
        states: keys and values by layer, [2, N, kv_heads, L, head_dim]; without prompts L is a
            multiple of `TILE`; written by the pass.
        mask: float32 [N, 1, 1, L] added to the scores.
        cursor: a pair of int64 [R]: the slot of each row, and where its new token goes.
        prompts: keys and values by layer, [2, G, kv_heads, P, head_dim], and float32 [G, 1, 1, P]
            added to the scores; None if rows share none.
    """

    states: Sequence[torch.Tensor]
    mask: torch.Tensor
    cursor: tuple[torch.Tensor, torch.Tensor]
    prompts: tuple[Sequence[torch.Tensor], torch.Tensor] | None = None

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [M, heads, 1, head_dim] in and out; what lies after the R rows is idle."""
        slot, at = self.cursor
        rows = len(slot)
        keys, values = self.states[layer]
        keys[slot, :, at] = key[:rows, :, 0]
        values[slot, :, at] = value[:rows, :, 0]
        queries = query.new_zeros(len(keys), *query.shape[1:]).index_copy_(0, slot, query[:rows])
        # Consecutive query heads share a key head, as in transformers' repeat_kv.
        queries = queries.view(*keys.shape[:2], -1, keys.shape[-1])
        if self.prompts is None:
            mixed = self._in_order(queries, keys, values, scale)
        else:
            prompts, mask = self.prompts
            queries = queries.float() * scale
            mixed = self._after_prompts(prompts[layer], mask, queries, self.states[layer])
        mixed = mixed.reshape(-1, *query.shape[1:]).index_select(0, slot)
        return F.pad(mixed, (0, 0, 0, 0, 0, 0, 0, len(query) - rows))

    def _in_order(
        self, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """Attend to a row's keys in tiles; [N, kv_heads, repeat, head_dim] in and out."""
        # One product for the tiles of all rows: parts of a tensor would be copied first.
        keys, values = (states.unflatten(2, (-1, TILE)) for states in (keys, values))
        scores = (queries.unsqueeze(2) @ keys.transpose(-1, -2)).transpose(2, 3).flatten(3)
        weights = attention_weights(scores, self.mask, scale).to(queries.dtype)
        parts = weights.unflatten(-1, (-1, TILE)).transpose(2, 3) @ values
        return added([*parts.unbind(2)])

    def _after_prompts(
        self, prompts: torch.Tensor, mask: torch.Tensor, queries: torch.Tensor, own: torch.Tensor
    ) -> torch.Tensor:
        """The same with prompts, whose keys meet the queries of a whole group in one product."""
        prompt_keys, prompt_values = prompts.unbind()
        keys, values = own.unbind()
        groups, repeat = len(prompt_keys), queries.shape[2]

        def grouped(part: torch.Tensor) -> torch.Tensor:
            """[N, kv_heads, repeat, X] to [G, kv_heads, N / G * repeat, X]."""
            return part.reshape(groups, -1, *part.shape[1:]).transpose(1, 2).flatten(2, 3)

        def apart(part: torch.Tensor) -> torch.Tensor:
            rows = part.reshape(*part.shape[:2], -1, repeat, part.shape[-1])
            return rows.transpose(1, 2).flatten(0, 1)

        after = queries @ keys.transpose(-1, -2).float() + self.mask
        shared = grouped(queries) @ prompt_keys.transpose(-1, -2).float() + mask
        weights = torch.softmax(torch.cat([shared, grouped(after)], dim=-1), dim=-1)
        ends = shared.shape[-1]
        before = weights[..., :ends] @ prompt_values.float()
        return apart(before) + apart(weights[..., ends:]) @ values.float()


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
