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
    """What stays the same from step to step until rows join or leave.

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
        self._prompt: tuple[torch.Tensor, torch.Tensor] | None = None
        self._suffix: tuple[torch.Tensor, torch.Tensor] | None = None
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
        prompt_keys, prompt_values = (
            part[:, : plan.layout.groups, :, : plan.longest] for part in self._prompt
        )
        suffix_keys, suffix_values = (
            part[:, :rows, :, :filled] for part in self._fit_suffix(rows, filled)
        )
        state = Decode(
            plan.layout,
            prompt_keys,
            prompt_values,
            plan.prompt_mask,
            suffix_keys,
            suffix_values,
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
            for part in self._suffix:
                part[:, to] = part[:, source]
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
        keys, values = (part[:, row, :, :own].clone() for part in self._suffix)
        self._prompts.add(tokens, Prefix(parent, len(tokens), keys, values))

    def _drop_idle_groups(self) -> list[int]:
        """Forget prompts that no row uses; returns the former places of the others, in order."""
        used = np.unique(self._group_of)
        self._groups = [self._groups[group] for group in used]
        self._group_of = np.searchsorted(used, self._group_of)
        return list(map(int, used))

    def _placed(self, prefixes: Sequence[Prefix]) -> list[int]:
        """Copy prompts into the buffers, reusing slots no row uses; returns their slots."""
        longest = max(prefix.length for prefix in prefixes)
        if self._prompt is not None and longest > _two(self._prompt[0])[1]:
            self._drop_idle_groups()  # The buffers are made anew.
        known = {id(group): place for place, group in enumerate(self._groups)}
        busy = {known[id(prefix)] for prefix in prefixes if id(prefix) in known}
        busy.update(self._group_of.tolist())
        idle = [place for place in range(len(self._groups)) if place not in busy]
        fresh = {id(prefix): prefix for prefix in prefixes if id(prefix) not in known}
        if fresh:
            added = range(len(self._groups), len(self._groups) + len(fresh) - len(idle))
            places = [*idle, *added][: len(fresh)]
            self._fit_prompt(max(len(self._groups), max(places) + 1), longest, prefixes[0])
            for place, prefix in zip(places, fresh.values(), strict=True):
                self._groups[place : place + 1] = [prefix]
                self._write(place, prefix)
                known[id(prefix)] = place
        return [known[id(prefix)] for prefix in prefixes]

    def _write(self, place: int, prefix: Prefix) -> None:
        """Copy a prompt's keys and values to a slot; positions past its end are masked."""
        assert self._prompt is not None, "a place is in a buffer"
        for node in prefix.chain():
            start = node.length - node.keys.shape[2]
            self._prompt[0][:, place, :, start : node.length] = node.keys
            self._prompt[1][:, place, :, start : node.length] = node.values

    def _fit_prompt(self, places: int, longest: int, like: Prefix) -> None:
        """Fit the prompt buffers, with some room to spare, to hold so many prompts so long."""
        have, capacity = (0, 0) if self._prompt is None else _two(self._prompt[0])
        if places <= have and longest <= capacity:
            return
        # As many places as now: those of many short prompts are too much for a few long ones.
        rows = places + places // 4
        length = max(capacity, -(-longest // LENGTH_STEP) * LENGTH_STEP)
        layers, kv_heads, _, width = like.keys.shape
        shape = (layers, rows, kv_heads, length, width)
        # The former ones go first: memory for both is not foreseen.
        self._prompt = None
        # Zeros, because masked values are multiplied by zero and must be finite.
        self._prompt = (like.keys.new_zeros(shape), like.keys.new_zeros(shape))
        for place, group in enumerate(self._groups):
            self._write(place, group)

    def _fit_suffix(self, rows: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the suffix buffers, grown to hold `rows` rows of `length` tokens."""
        assert self._prompt is not None, "suffixes follow prompts"
        layers, _, kv_heads, _, width = self._prompt[0].shape
        have_rows, capacity = (0, 0) if self._suffix is None else _two(self._suffix[0])
        if self._suffix is not None and rows <= have_rows and length <= capacity:
            return self._suffix
        capacity = max(capacity, FIRST_CAPACITY)
        while capacity < length:
            capacity *= 2
        grown = []
        for part in range(2):
            # Zeros, because masked values are multiplied by zero and must be finite.
            tensor = self._prompt[part].new_zeros(layers, rows, kv_heads, capacity, width)
            if self._suffix is not None:
                old = self._suffix[part]
                kept = min(rows, int(old.shape[1]))
                tensor[:, :kept, :, : old.shape[3]] = old[:, :kept]
            grown.append(tensor)
        self._suffix = (grown[0], grown[1])
        return self._suffix

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


def _two(tensor: torch.Tensor) -> tuple[int, int]:
    return int(tensor.shape[1]), int(tensor.shape[3])
