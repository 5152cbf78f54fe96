"""A decoder whose rows hold all their keys in the order of their positions.

Where sums are added in that order (see `attention_dtype`), a row's logits are then bit for bit
those that training computes, and do not depend on other rows.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from tokengym.agents.service.engine.attention import DecodeInOrder
from tokengym.agents.service.engine.attention_dtype import TILE, rows_round_alike
from tokengym.agents.service.generation.decoder import Decoder, SharedPromptDecoder
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache
from tokengym.agents.service.generation.prompts import Prompts, next_logits, run_layers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens


@dataclass
class _Row:
    """A row: its prompt, the slot of its keys, and its tokens so far."""

    prompt: Prefix
    slot: int
    length: int


class RowDecoder:
    """A `Decoder` over `attention.DecodeInOrder`."""

    def __init__(self, model: Any, store: PrefixCache, weights: str) -> None:
        self._model = model
        self._prompts = Prompts(model, store, weights)
        self._rows: list[_Row] = []
        # As in `DecodeInOrder`; products read all of it, so that no tensor is a part of a larger.
        self._states: list[torch.Tensor] = []
        # The prefix in each slot as far as it is still held: the next turn adds to it.
        self._held: list[Callable[[], Prefix | None]] = []

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        prefixes = self._prompts.prefixes(prompts)
        if not self._states:
            self._states = [part[:, None, :, :0] for part in prefixes[0].states.unbind(1)]
        count = len(self._rows) + len(prefixes)
        longest = max(prefix.length for prefix in prefixes)
        if count > len(self._held) or longest > self._room:
            self._rebuild(count, longest)
        idle = sorted({*range(len(self._held))} - {row.slot for row in self._rows})
        for prefix in prefixes:
            chain = [*prefix.chain()]
            slot = next((slot for slot in idle if self._held[slot]() in chain), idle[0])
            idle.remove(slot)
            self._write(slot, chain)
            self._rows.append(_Row(prefix, slot, prefix.length))
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        slots = np.array([row.slot for row in self._rows])
        lengths = np.array([row.length for row in self._rows])
        if lengths.max() >= self._room:
            self._rebuild(len(self._rows), int(lengths.max()) + 1)
            slots = np.arange(len(slots))
        last = torch.zeros(int(slots.max()) + 1, 1, dtype=torch.int64)
        last[slots, 0] = at = torch.from_numpy(lengths)
        hidden = torch.arange(self._room) > last
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, torch.finfo(torch.float32).min)
        state = DecodeInOrder(self._states, mask[:, None, None], (torch.from_numpy(slots), at))
        ids = torch.from_numpy(tokens)[:, None]
        logits = run_layers(self._model, state, ids, at[:, None], torch.arange(len(ids)))
        for row in self._rows:
            row.length += 1
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        self._rows = [self._rows[row] for row in rows]
        longest = max(row.length for row in self._rows)
        # Copying rows costs more than a few idle slots, or a few masked keys, do.
        sparse = 2 * len(rows) <= max(row.slot for row in self._rows)
        if sparse or 2 * longest < self._room - TILE:
            self._rebuild(len(rows), longest)

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own = self._rows[row]
        if own.length == own.prompt.length or len(tokens) != own.length:
            return
        new = slice(own.prompt.length, own.length)
        states = torch.stack([layer[:, own.slot, :, new] for layer in self._states], dim=1)
        whole = Prefix(own.prompt, own.length, states)
        self._prompts.add(tokens, whole)
        self._held[own.slot] = weakref.ref(whole)

    @property
    def _room(self) -> int:
        return int(self._states[0].shape[3])

    def _write(self, slot: int, chain: list[Prefix]) -> None:
        """Copy to a slot what it does not hold yet; positions past the end are masked."""
        held = self._held[slot]()
        for node in chain:
            if node is held:
                break
            at = slice(node.length - node.states.shape[3], node.length)
            for layer, states in enumerate(self._states):
                states[:, slot, :, at] = node.states[:, layer]
        self._held[slot] = weakref.ref(chain[0])

    def _rebuild(self, count: int, longest: int) -> None:
        """Make room for `count` rows of `longest` tokens; those that run get the first slots."""
        count += count // 4
        longest = max([longest, *(row.length for row in self._rows)])
        room = -(-longest // TILE) * TILE
        slots = torch.tensor([row.slot for row in self._rows], dtype=torch.int64)
        # Layer by layer: memory for both is not foreseen.
        for layer, former in enumerate(self._states):
            _, _, kv_heads, length, width = former.shape
            kept = min(length, room)
            # Zeros, because masked values are multiplied by zero and must be finite.
            states = former.new_zeros(2, count, kv_heads, room, width)
            states[:, : len(slots), :, :kept] = former[:, slots, :, :kept]
            self._states[layer] = states
        held = [self._held[row.slot] for row in self._rows]
        self._held = [*held, *[_nothing] * (count - len(held))]
        for slot, row in enumerate(self._rows):
            row.slot = slot


def batch_decoder(model: Any, store: PrefixCache, weights: str) -> Decoder:
    """Return the decoder that suits a model whose prompts can be shared."""
    weight = next(model.parameters())
    if rows_round_alike(weight.dtype, weight.device):
        return RowDecoder(model, store, weights)
    return SharedPromptDecoder(model, store, weights)


def _nothing() -> None:
    return None
