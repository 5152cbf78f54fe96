"""A decoder whose rows hold all their keys in the order of their positions.

Where sums are added in that order (see `attention_dtype`), a row's logits are then bit for bit
those that training computes, and do not depend on other rows. Elsewhere libraries of matrix
products choose their order by the shape of the operands; with `LANES` all shapes are constants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from tokengym.agents.service.engine.attention import DecodeInOrder
from tokengym.agents.service.engine.attention_dtype import TILE, rows_round_alike
from tokengym.agents.service.generation.decoder import SharedPromptDecoder
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache
from tokengym.agents.service.generation.prompts import Prompts, next_logits, run_layers
from tokengym.agents.service.generation.slots import Slots, roomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens


LANES = 16


@dataclass
class _Row:
    """A row: its prompt, the slot of its keys, and its tokens so far."""

    prompt: Prefix
    slot: int
    length: int


class RowDecoder:
    """A `Decoder` over `attention.DecodeInOrder`.

    Args:
        model: of an architecture that can share prompts.
        store: cache of computed prompts.
        weights: key of the model's weights.
        lanes: rows that run at a time, some of them idle, so that no row depends on another by a
            single bit; prompts run alone, and `store` must find whole ones only. None for all rows
            at once.
    """

    def __init__(
        self, model: Any, store: PrefixCache, weights: str, lanes: int | None = None
    ) -> None:
        self._model = model
        self._lanes = lanes
        self._prompts = Prompts(model, store, weights)
        self._rows: list[_Row] = []
        self._slots = Slots()

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        together = [prompts] if self._lanes is None else [[prompt] for prompt in prompts]
        prefixes = [prefix for some in together for prefix in self._prompts.prefixes(some)]
        slots, count = self._slots, len(self._rows) + len(prefixes)
        longest = max(prefix.length for prefix in prefixes)
        if count > len(slots) or longest > slots.room:
            self._rebuild(count, longest, prefixes[0])
        idle = sorted({*range(len(slots))} - {row.slot for row in self._rows})
        for prefix in prefixes:
            chain = [*prefix.chain()]
            slot = next((slot for slot in idle if slots.held(slot) in chain), idle[0])
            idle.remove(slot)
            slots.put(slot, prefix)
            self._rows.append(_Row(prefix, slot, prefix.length))
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        if max(row.length for row in self._rows) >= self._slots.room:
            self._rebuild(len(self._rows), self._slots.room + 1, self._rows[0].prompt)
        slots = np.array([row.slot for row in self._rows])
        lanes = self._lanes or int(slots.max()) + 1
        part_of = slots // lanes
        chosen = [np.flatnonzero(part_of == part) for part in np.unique(part_of)]
        parts = [self._run(tokens[rows], rows, lanes) for rows in chosen]
        for row in self._rows:
            row.length += 1
        if self._lanes is None:
            return parts[0]
        return torch.cat(parts)[torch.from_numpy(np.argsort(np.concatenate(chosen)))]

    def _run(self, tokens: NDArray[np.int64], rows: NDArray[np.int64], lanes: int) -> torch.Tensor:
        """Append tokens [R] to rows that lie within `lanes` slots; logits [R, vocab]."""
        some = [self._rows[row] for row in rows]
        slots = torch.tensor([row.slot for row in some])
        lengths = torch.tensor([row.length for row in some])
        first = int(slots[0]) // lanes * lanes
        states = [layer[:, first : first + lanes] for layer in self._slots.states]
        slots -= first
        last = torch.zeros(states[0].shape[1], 1, dtype=torch.int64)
        last[slots, 0] = lengths
        hidden = torch.arange(self._slots.room) > last
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, torch.finfo(torch.float32).min)
        state = DecodeInOrder(states, mask[:, None, None], (slots, lengths))
        idle = 0 if self._lanes is None else lanes - len(some)
        ids, at = (F.pad(each, (0, idle))[:, None] for each in (torch.from_numpy(tokens), lengths))
        return run_layers(self._model, state, ids, at, torch.arange(len(ids)))[: len(some)]

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        self._rows = [self._rows[row] for row in rows]
        longest = max(row.length for row in self._rows)
        # Copying rows costs more than a few idle slots, or a few masked keys, do.
        most = 2 * len(rows) if self._lanes is None else roomy(len(rows))
        lanes, last = self._lanes or 1, max(row.slot for row in self._rows)
        sparse = last // lanes > (most - 1) // lanes
        if sparse or 2 * longest < self._slots.room - TILE:
            self._rebuild(len(rows), longest, self._rows[0].prompt)

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own = self._rows[row]
        if self._lanes is not None:
            return  # In a decode step keys may differ in a bit from those of a prompt.
        if own.length == own.prompt.length or len(tokens) != own.length:
            return
        new = slice(own.prompt.length, own.length)
        states = torch.stack([layer[:, own.slot, :, new] for layer in self._slots.states], dim=1)
        whole = Prefix(own.prompt, own.length, states)
        self._prompts.add(tokens, whole)
        self._slots.note(own.slot, whole)

    def _rebuild(self, count: int, longest: int, like: Prefix) -> None:
        """Make room for `count` rows of `longest` tokens; those that run get the first slots."""
        longest = max([longest, *(row.length for row in self._rows)])
        kept = [row.slot for row in self._rows]
        self._slots.resize(kept, roomy(count), -(-longest // TILE) * TILE, like)
        for slot, row in enumerate(self._rows):
            row.slot = slot


def shared_decoder(model: Any) -> type[RowDecoder | SharedPromptDecoder]:
    """Return the kind of decoder that suits a model whose prompts can be shared."""
    weight = next(model.parameters())
    return RowDecoder if rows_round_alike(weight.dtype, weight.device) else SharedPromptDecoder
