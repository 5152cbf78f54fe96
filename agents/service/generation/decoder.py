"""Decode a batch of sequences token by token; those of one prompt share its keys and values.

Rows join and leave between any two steps. Which request a row belongs to, how its tokens are
sampled and when it ends is left to the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from tokengym.agents.service.engine.attention import Decode, GroupLayout
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache
from tokengym.agents.service.generation.prompts import Prompts, next_logits, run_layers
from tokengym.agents.service.generation.slots import Slots, roomy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens

FIRST_CAPACITY = 16
LENGTH_STEP = 64


class Decoder(Protocol):
    """A growing batch under one set of weights."""

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """Add a row for each prompt; float32 logits [len(prompts), vocab] of their first tokens."""
        ...

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """Append one token [R] to every row; float32 logits [R, vocab] of the next."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows in this order, drop the others; cheap for rows that keep their place."""

    def remember(self, row: int, tokens: Tokens) -> None:
        """Cache a row's keys for later prompts that begin with `tokens`, the row's own tokens."""


@dataclass(frozen=True)
class _Plan:
    """The part of a decode step that is the same until rows join or leave.

    Attributes:
        layout: where the rows of each prompt lie.
        lengths: int64 [R], length of each row's prompt.
        longest: the longest of them.
        prompt_mask: see `Decode`.
    """

    layout: GroupLayout
    lengths: torch.Tensor
    longest: int
    prompt_mask: torch.Tensor | None


class SharedPromptDecoder:
    """A `Decoder` over `attention.Decode`."""

    def __init__(self, model: Any, store: PrefixCache, weights: str) -> None:
        self._model = model
        self._prompts = Prompts(model, store, weights)
        self._device = self._prompts.device
        # Of each row: its prompt, the slot of the prompt, and how many tokens have followed.
        self._prefixes: list[Prefix] = []
        self._group_of: NDArray[np.int64] = np.empty(0, np.int64)
        self._cursor: NDArray[np.int64] = np.empty(0, np.int64)
        self._shared, self._own = Slots(), Slots()
        self._plan: _Plan | None = None

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        prefixes = self._prompts.prefixes(prompts)
        self._fit_shared(prefixes)
        slots = range(len(self._shared))
        slot_of = {id(held): slot for slot in slots if (held := self._shared.held(slot))}
        busy = {*self._group_of.tolist(), *(slot_of.get(id(prefix)) for prefix in prefixes)}
        idle = iter([slot for slot in slots if slot not in busy])
        for prefix in prefixes:
            if id(prefix) not in slot_of:
                slot_of[id(prefix)] = slot = next(idle)
                self._shared.put(slot, prefix)
        places = [slot_of[id(prefix)] for prefix in prefixes]
        self._prefixes += prefixes
        self._group_of = np.concatenate([self._group_of, np.array(places, np.int64)])
        self._cursor = np.concatenate([self._cursor, np.zeros(len(prefixes), np.int64)])
        self._fit_own(FIRST_CAPACITY)
        self._plan = None
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        plan = self._plan = self._plan or self._new_plan()
        rows, groups = len(self._cursor), plan.layout.groups
        filled = int(self._cursor.max()) + 1
        self._fit_own(filled)
        cursor = torch.from_numpy(self._cursor).to(self._device)
        every = torch.arange(rows, device=self._device)
        state = Decode(
            plan.layout,
            [layer[:, :groups, :, : plan.longest] for layer in self._shared.states],
            plan.prompt_mask,
            [layer[:, :rows, :, :filled] for layer in self._own.states],
            self._hide(cursor + 1, filled),
            (every, cursor),
        )
        ids, positions = torch.from_numpy(tokens)[:, None], (plan.lengths + cursor)[:, None]
        logits = run_layers(self._model, state, ids, positions, every)
        self._cursor = self._cursor + 1
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        index = np.asarray(rows, np.int64)
        self._plan = None
        self._prefixes = [self._prefixes[row] for row in rows]
        self._group_of, self._cursor = self._group_of[index], self._cursor[index]
        moved = np.flatnonzero(index != np.arange(len(index)))
        if len(moved):
            to = torch.from_numpy(moved).to(self._device)
            source = torch.from_numpy(index[moved]).to(self._device)
            for layer in self._own.states:
                layer[:, to] = layer[:, source]
        # Copying prompts costs more than a few idle ones do.
        if 2 * len(np.unique(self._group_of)) <= self._group_of.max() + 1:
            self._compact(0, self._shared.room)

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own, parent = int(self._cursor[row]), self._prefixes[row]
        if own == 0 or len(tokens) != parent.length + own:
            return
        states = torch.stack([layer[:, row, :, :own] for layer in self._own.states], dim=1)
        self._prompts.add(tokens, Prefix(parent, len(tokens), states))

    def _fit_shared(self, fresh: Sequence[Prefix]) -> None:
        """Have slots for prompts that come beside those of the rows."""
        longest = max(prefix.length for prefix in fresh)
        used = {id(prefix) for prefix in (*self._prefixes, *fresh)}
        if len(used) <= len(self._shared) and longest <= self._shared.room:
            return
        # As long as needed now: as many places as many short prompts have are too many for a few
        # long ones.
        longest = max(prefix.length for prefix in (*self._prefixes, *fresh))
        self._compact(len(used), -(-longest // LENGTH_STEP) * LENGTH_STEP, fresh[0])

    def _compact(self, count: int, room: int, like: Prefix | None = None) -> None:
        """Keep the prompts of rows alone, in the first of at least `count` slots."""
        used = np.unique(self._group_of)
        like = like or self._prefixes[0]
        self._shared.resize(used.tolist(), roomy(max(count, len(used))), room, like)
        self._group_of = np.searchsorted(used, self._group_of)

    def _fit_own(self, length: int) -> None:
        """Have slots of `length` tokens for what follows the prompt of each row."""
        rows, have, room = len(self._cursor), len(self._own), self._own.room
        if rows > have or length > room:
            room = max(room, FIRST_CAPACITY, 1 << (length - 1).bit_length())
            self._own.resize(range(min(rows, have)), rows, room, self._prefixes[0])

    def _new_plan(self) -> _Plan:
        """Lay the rows of each prompt side by side, as many places for each as most have."""
        group_of = self._group_of
        counts = np.bincount(group_of)
        groups, size = len(counts), int(counts.max())
        order = np.argsort(group_of, kind="stable")
        starts = np.cumsum(counts) - counts
        places = np.empty(len(order), np.int64)
        places[order] = group_of[order] * size + np.arange(len(order)) - starts[group_of[order]]
        slots = np.zeros(groups * size, np.int64)
        slots[places] = np.arange(len(places))
        moved = () if np.array_equal(places, np.arange(len(slots))) else (slots, places)
        lengths = np.zeros(groups, np.int64)
        lengths[group_of] = own = np.array([prefix.length for prefix in self._prefixes])
        longest = int(own.max())
        to = self._device
        return _Plan(
            GroupLayout(groups, size, *(torch.from_numpy(x).to(to) for x in moved)),
            lengths=torch.from_numpy(own).to(to),
            longest=longest,
            prompt_mask=self._hide(torch.from_numpy(lengths), longest),
        )

    def _hide(self, lengths: torch.Tensor, width: int) -> torch.Tensor | None:
        """Return a mask that hides positions from `lengths` [N] on, [N, 1, 1, width], or None."""
        if bool((lengths == width).all()):
            return None
        hidden = torch.arange(width)[None, :] >= lengths.cpu()[:, None]
        mask = torch.zeros(hidden.shape)
        mask.masked_fill_(hidden, torch.finfo(mask.dtype).min)
        return mask[:, None, None, :].to(self._device)
