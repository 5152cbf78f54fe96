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
        rows: int64 [R], 0 to R - 1.
        lengths: int64 [R], length of each row's prompt.
        longest: the longest of them.
        prompt_mask: see `Decode`.
    """

    layout: GroupLayout
    rows: torch.Tensor
    lengths: torch.Tensor
    longest: int
    prompt_mask: torch.Tensor | None


class SharedPromptDecoder:
    """A `Decoder` over `attention.Decode`."""

    def __init__(self, model: Any, store: PrefixCache, weights: str) -> None:
        self._model = model
        self._prompts = Prompts(model, store, weights)
        self._device = self._prompts.device
        self._groups: list[Prefix] = []
        self._group_of: NDArray[np.int64] = np.empty(0, np.int64)
        self._cursor: NDArray[np.int64] = np.empty(0, np.int64)
        # As in `Decode`, with room for more prompts, rows and tokens.
        self._prompt: torch.Tensor | None = None
        self._suffix: torch.Tensor | None = None
        self._plan: _Plan | None = None

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        prefixes = self._prompts.prefixes(prompts)
        places = self._placed(prefixes)
        self._group_of = np.concatenate([self._group_of, np.array(places, np.int64)])
        self._cursor = np.concatenate([self._cursor, np.zeros(len(prefixes), np.int64)])
        self._fit_suffix(len(self._cursor), FIRST_CAPACITY)
        self._plan = None
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        assert self._prompt is not None, "step needs admitted rows"
        if self._plan is None:
            self._plan = self._new_plan()
        plan, rows = self._plan, len(self._cursor)
        filled = int(self._cursor.max()) + 1
        cursor = torch.from_numpy(self._cursor).to(self._device)
        state = Decode(
            plan.layout,
            self._prompt[:, :, : plan.layout.groups, :, : plan.longest],
            plan.prompt_mask,
            self._fit_suffix(rows, filled)[:, :, :rows, :, :filled],
            self._hide(cursor + 1, filled),
            (plan.rows, cursor),
        )
        ids, positions = torch.from_numpy(tokens)[:, None], (plan.lengths + cursor)[:, None]
        logits = run_layers(self._model, state, ids, positions, plan.rows)
        self._cursor = self._cursor + 1
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        index = np.asarray(rows, np.int64)
        self._plan = None
        self._group_of, self._cursor = self._group_of[index], self._cursor[index]
        moved = np.flatnonzero(index != np.arange(len(index)))
        if self._suffix is not None and len(moved):
            to = torch.from_numpy(moved).to(self._device)
            source = torch.from_numpy(index[moved]).to(self._device)
            self._suffix[:, :, to] = self._suffix[:, :, source]
        # Copying prompts costs more than a few idle ones do.
        if len(np.unique(self._group_of)) * 2 <= len(self._groups):
            for place, former in enumerate(self._drop_idle_groups()):
                if place != former:
                    self._write(place, self._groups[place])

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own = int(self._cursor[row])
        parent = self._groups[self._group_of[row]]
        if own == 0 or self._suffix is None or len(tokens) != parent.length + own:
            return
        states = self._suffix[:, :, row, :, :own].clone()
        self._prompts.add(tokens, Prefix(parent, len(tokens), states))

    def _drop_idle_groups(self) -> list[int]:
        """Forget prompts that no row uses; returns the former places of the others, in order."""
        used = np.unique(self._group_of)
        self._groups = [self._groups[group] for group in used]
        self._group_of = np.searchsorted(used, self._group_of)
        return list(map(int, used))

    def _placed(self, prefixes: Sequence[Prefix]) -> list[int]:
        """Copy prompts into the buffers, reusing slots no row uses; returns their slots."""
        longest = max(prefix.length for prefix in prefixes)
        if self._prompt is not None and longest > _room(self._prompt)[1]:
            self._drop_idle_groups()  # The buffers are made anew.
        slot_of = {id(group): place for place, group in enumerate(self._groups)}
        busy = {slot_of[id(prefix)] for prefix in prefixes if id(prefix) in slot_of}
        busy.update(self._group_of.tolist())
        idle = [place for place in range(len(self._groups)) if place not in busy]
        fresh = {id(prefix): prefix for prefix in prefixes if id(prefix) not in slot_of}
        if fresh:
            added = range(len(self._groups), len(self._groups) + len(fresh) - len(idle))
            places = [*idle, *added][: len(fresh)]
            self._fit_prompt(max(len(self._groups), max(places) + 1), longest, prefixes[0])
            for place, prefix in zip(places, fresh.values(), strict=True):
                self._groups[place : place + 1] = [prefix]
                self._write(place, prefix)
                slot_of[id(prefix)] = place
        return [slot_of[id(prefix)] for prefix in prefixes]

    def _write(self, place: int, prefix: Prefix) -> None:
        """Copy a prompt's keys and values to a slot; positions past its end are masked."""
        assert self._prompt is not None, "a place is in a buffer"
        for node in prefix.chain():
            start = node.length - node.states.shape[3]
            self._prompt[:, :, place, :, start : node.length] = node.states

    def _fit_prompt(self, places: int, longest: int, like: Prefix) -> None:
        """Fit the prompt buffers to `places` prompts of `longest` tokens, with room to spare."""
        have, capacity = _room(self._prompt)
        if places <= have and longest <= capacity:
            return
        # As many places as now: those of many short prompts are too much for a few long ones.
        rows = places + places // 4
        length = max(capacity, -(-longest // LENGTH_STEP) * LENGTH_STEP)
        _, layers, kv_heads, _, width = like.states.shape
        # The former ones go first: memory for both is not foreseen.
        self._prompt = None
        # Zeros, because masked values are multiplied by zero and must be finite.
        self._prompt = like.states.new_zeros(2, layers, rows, kv_heads, length, width)
        for place, group in enumerate(self._groups):
            self._write(place, group)

    def _fit_suffix(self, rows: int, length: int) -> torch.Tensor:
        """Return the suffix buffers, grown to hold `rows` rows of `length` tokens."""
        assert self._prompt is not None, "suffixes follow prompts"
        have, capacity = _room(self._suffix)
        if self._suffix is not None and rows <= have and length <= capacity:
            return self._suffix
        capacity = max(capacity, FIRST_CAPACITY)
        while capacity < length:
            capacity *= 2
        _, layers, _, kv_heads, _, width = self._prompt.shape
        # Zeros, because masked values are multiplied by zero and must be finite.
        grown = self._prompt.new_zeros(2, layers, rows, kv_heads, capacity, width)
        if self._suffix is not None:
            grown[:, :, :have, :, : self._suffix.shape[4]] = self._suffix[:, :, :rows]
        self._suffix = grown
        return grown

    def _new_plan(self) -> _Plan:
        groups = len(self._groups)
        order = np.argsort(self._group_of, kind="stable")
        counts = np.bincount(self._group_of, minlength=groups)
        size = int(counts.max())
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        places = np.empty(len(order), np.int64)
        ranked = self._group_of[order]
        places[order] = ranked * size + np.arange(len(order)) - starts[ranked]
        slots = np.zeros(groups * size, np.int64)
        slots[places] = np.arange(len(places))
        in_order = len(places) == len(slots) and np.array_equal(places, np.arange(len(places)))
        to = self._device
        layout = GroupLayout(
            groups,
            size,
            None if in_order else torch.from_numpy(slots).to(to),
            None if in_order else torch.from_numpy(places).to(to),
        )
        lengths = np.array([group.length for group in self._groups])
        longest = int(lengths[self._group_of].max())
        return _Plan(
            layout,
            rows=torch.arange(len(places), device=to),
            lengths=torch.from_numpy(lengths[self._group_of]).to(to),
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


def _room(states: torch.Tensor | None) -> tuple[int, int]:
    """Return how many sequences, and of how many tokens, a buffer can hold."""
    return (0, 0) if states is None else (int(states.shape[2]), int(states.shape[4]))
