"""Decode a batch of sequences token by token; those of one prompt share its keys and values.

Rows join and leave between any two steps. Which request a row belongs to, how its tokens are
sampled and when it ends is left to the sampler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch

from tokengym.agents.service.engine.attention import (
    AttentionState,
    Decode,
    GroupLayout,
    Prefill,
    attending,
    hidden_states,
)
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.pieces import pieces_for
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens

FIRST_CAPACITY = 16


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
        self._store = store
        self._weights = weights
        self._device = next(model.parameters()).device
        self._groups: list[Prefix] = []
        self._group_of: NDArray[np.int64] = np.empty(0, np.int64)
        self._cursor: NDArray[np.int64] = np.empty(0, np.int64)
        self._prompt: tuple[torch.Tensor, torch.Tensor] | None = None
        self._suffix: tuple[torch.Tensor, torch.Tensor] | None = None
        self._plan: _Plan | None = None

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        prefixes = self._prefixes(prompts)
        places = self._placed(prefixes)
        self._group_of = np.concatenate([self._group_of, np.array(places, np.int64)])
        self._cursor = np.concatenate([self._cursor, np.zeros(len(prefixes), np.int64)])
        self._fit_suffix(len(self._cursor), FIRST_CAPACITY)
        self._plan = None
        return torch.stack([_logits(prefix) for prefix in prefixes])

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
        logits = self._run(state, ids, positions, plan.rows)
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
        used = np.unique(self._group_of)
        # Copying prompts costs more than a few idle ones do.
        if len(used) * 2 <= len(self._groups):
            for place, group in enumerate(used):
                if place != group:
                    self._write(place, self._groups[group])
            self._groups = [self._groups[group] for group in used]
            self._group_of = np.searchsorted(used, self._group_of)

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own = int(self._cursor[row])
        parent = self._groups[self._group_of[row]]
        if own == 0 or self._suffix is None or len(tokens) != parent.length + own:
            return
        keys, values = (part[:, row, :, :own].clone() for part in self._suffix)
        self._store.add(self._weights, tokens, Prefix(parent, len(tokens), keys, values))

    def _prefixes(self, prompts: Sequence[Tokens]) -> list[Prefix]:
        found: dict[bytes, Prefix] = {}
        missing: dict[bytes, tuple[Tokens, Prefix | None]] = {}
        for prompt in prompts:
            key = prompt.tobytes()
            if key in found or key in missing:
                continue
            prefix = self._store.find(self._weights, prompt)
            if prefix is not None and prefix.length == len(prompt):
                found[key] = prefix
            else:
                missing[key] = (prompt, prefix)
        # Alike in length, those without a past first: a batch is either all with or all without.
        order = sorted(missing, key=lambda key: (missing[key][1] is not None, len(missing[key][0])))
        batches: list[list[bytes]] = []
        for key in order:
            if not batches or self._full([missing[k] for k in [*batches[-1], key]]):
                batches.append([])
            batches[-1].append(key)
        for batch in batches:
            made = self._prefill([missing[key] for key in batch])
            for key, prefix in zip(batch, made, strict=True):
                found[key] = prefix
                self._store.add(self._weights, missing[key][0], prefix)
        return [found[prompt.tobytes()] for prompt in prompts]

    def _full(self, items: list[tuple[Tokens, Prefix | None]]) -> bool:
        mixed = (items[0][1] is None) != (items[-1][1] is None)
        positions = max(len(tokens) for tokens, _ in items) * len(items)
        return mixed or positions > pieces_for(self._device).prefill

    def _prefill(self, items: list[tuple[Tokens, Prefix | None]]) -> list[Prefix]:
        pasts = [0 if past is None else past.length for _, past in items]
        news = [len(tokens) - past for (tokens, _), past in zip(items, pasts, strict=True)]
        width = max(news)
        ids = np.zeros((len(items), width), np.int64)
        at = np.zeros((len(items), width), np.int64)
        for line, ((tokens, _), past, new) in enumerate(zip(items, pasts, news, strict=True)):
            ids[line, :new] = tokens[past:]
            at[line, :new] = np.arange(past, past + new)
        state = Prefill()
        if max(pasts):
            joined = [past.joined() for _, past in items if past is not None]
            longest = max(pasts)
            state.past_keys = torch.stack([_padded(keys, longest) for keys, _ in joined], dim=1)
            state.past_values = torch.stack([_padded(vals, longest) for _, vals in joined], dim=1)
            past_seen = torch.arange(longest)[None, :] < torch.tensor(pasts)[:, None]
            causal = torch.ones(width, width, dtype=torch.bool).tril()
            state.mask = torch.cat(
                [
                    past_seen[:, None, :].expand(-1, width, -1),
                    causal[None].expand(len(items), -1, -1),
                ],
                dim=-1,
            )[:, None].to(self._device)
        last = torch.tensor([line * width + new - 1 for line, new in enumerate(news)])
        logits = self._run(state, torch.from_numpy(ids), torch.from_numpy(at), last)
        keys, values = torch.stack(state.keys), torch.stack(state.values)
        return [
            Prefix(
                past,
                len(tokens),
                keys[:, line, :, :new].contiguous(),
                values[:, line, :, :new].contiguous(),
                logits[line].clone(),
            )
            for line, ((tokens, past), new) in enumerate(zip(items, news, strict=True))
        ]

    def _run(
        self, state: AttentionState, ids: torch.Tensor, at: torch.Tensor, wanted: torch.Tensor
    ) -> torch.Tensor:
        """Run tokens [R, T] at positions [R, T]; logits at `wanted` of the R * T places."""
        with torch.inference_mode(), attending(self._model, state):
            hidden = hidden_states(self._model, ids.to(self._device), at.to(self._device))
            chosen = hidden.flatten(0, 1)[wanted.to(self._device)]
            return logits_of(self._model, chosen)

    def _placed(self, prefixes: Sequence[Prefix]) -> list[int]:
        """Copy prompts into the buffers, reusing slots no row uses; returns their slots."""
        known = {id(group): place for place, group in enumerate(self._groups)}
        busy = {known[id(prefix)] for prefix in prefixes if id(prefix) in known}
        busy.update(self._group_of.tolist())
        idle = [place for place in range(len(self._groups)) if place not in busy]
        fresh = {id(prefix): prefix for prefix in prefixes if id(prefix) not in known}
        if fresh:
            added = range(len(self._groups), len(self._groups) + len(fresh) - len(idle))
            places = [*idle, *added][: len(fresh)]
            self._fit_prompt(max(len(self._groups), max(places) + 1), list(fresh.values()))
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

    def _fit_prompt(self, places: int, fresh: Sequence[Prefix]) -> None:
        """Grow the prompt buffers, by half at least, to hold `places` prompts like these."""
        have, capacity = (0, 0) if self._prompt is None else _two(self._prompt[0])
        longest = max(prefix.length for prefix in fresh)
        if places <= have and longest <= capacity:
            return
        rows = have if places <= have else max(places, have + have // 2)
        length = capacity if longest <= capacity else max(longest, capacity + capacity // 2)
        layers, kv_heads, _, width = fresh[0].keys.shape
        # Zeros, because masked values are multiplied by zero and must be finite.
        shape = (layers, rows, kv_heads, length, width)
        keys, values = (torch.zeros(shape, device=self._device) for _ in range(2))
        if self._prompt is not None:
            keys[:, :have, :, :capacity], values[:, :have, :, :capacity] = self._prompt
        self._prompt = (keys, values)

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


def _padded(tensor: torch.Tensor, length: int) -> torch.Tensor:
    """Zero-pad the second to last dimension to `length`."""
    short = length - int(tensor.shape[-2])
    return tensor if short == 0 else torch.nn.functional.pad(tensor, (0, 0, 0, short))


def _logits(prefix: Prefix) -> torch.Tensor:
    assert prefix.logits is not None, "a prompt's prefix carries the logits after it"
    return prefix.logits
