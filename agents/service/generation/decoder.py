"""Decode a batch of sequences token by token.

Rows join and leave between any two steps. Which request a row belongs to, how its tokens are
sampled and when it ends is left to the sampler.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention import Decode
from tokengym.agents.service.engine.attention_dtype import TILE, rows_round_alike
from tokengym.agents.service.engine.packing import Tokens
from tokengym.agents.service.generation.prefix_cache import Prefix, PrefixCache
from tokengym.agents.service.generation.prompts import Prompts, next_logits, run_layers
from tokengym.agents.service.generation.slots import Slots, roomy

LANES = 16
# The room of prompts that rows share, and the least of what follows them.
PROMPT_STEP, LEAST_ROOM = 64, 16


class Decoder(Protocol):
    """A growing batch under one set of weights."""

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """Add a row for each prompt; float32 logits [len(prompts), vocab] of their first tokens."""
        ...

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """Append one token [R] to every row; float32 logits [R, vocab] of the next."""
        ...

    def keep(self, rows: Sequence[int]) -> None:
        """Keep these rows in this order, drop the others."""

    def remember(self, row: int, tokens: Tokens) -> None:
        """Cache a row's keys for later prompts that begin with `tokens`, the row's own tokens."""


@dataclass
class _Row:
    """A row: its prompt, the slot of its keys, and its tokens so far."""

    prompt: Prefix
    slot: int
    length: int


class SlotDecoder:
    """A `Decoder` over `attention.Decode`, for models whose prompts can be shared.

    Where sums are added in the order of positions (see `attention_dtype`), a row holds all of its
    keys in that order, its logits are bit for bit those that training computes, and they do not
    depend on other rows. Elsewhere rows of one prompt, in a group of slots, share its keys.

    Args:
        model: runs with these weights.
        store: cache of computed prompts.
        weights: key of the weights.
        lanes: rows that run at a time, some of them idle, each with all its keys: libraries of
            matrix products choose the order of sums by the shape of the operands, and so no row
            depends on another by a single bit. Prompts run alone, in pieces of one size. None for
            all rows at once.
    """

    def __init__(
        self, model: Any, store: PrefixCache, weights: str, lanes: int | None = None
    ) -> None:
        self._model = model
        self._lanes = lanes
        self._prompts = Prompts(model, store, weights)
        weight = next(model.parameters())
        self._device = weight.device
        self._shares = lanes is None and not rows_round_alike(weight.dtype, weight.device)
        self._rows: list[_Row] = []
        # How many there were since slots were last laid out, in groups of this size.
        self._most, self._size = 0, 1
        self._own = Slots()
        # A slot for each group; that of the rows where each holds its prompt.
        self._shared = Slots() if self._shares else self._own

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; each distinct prompt is computed once."""
        if self._lanes is None:
            prefixes = self._prompts.prefixes(prompts)
        else:
            prefixes = [self._prompts.alone(prompt) for prompt in prompts]
        for number, prefix in enumerate(prefixes):
            slot = self._seat(prefix)
            if slot is None:
                self._lay_out(prefixes[number:])
                slot = self._seat(prefix)
                assert slot is not None, "there are slots for those that join"
            self._shared.put(slot // self._size, prefix)
            self._rows.append(_Row(prefix, slot, prefix.length))
        self._most = max(self._most, len(self._rows))
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        if max(map(self._filled, self._rows)) >= self._own.room:
            self._lay_out()
        slots = np.array([row.slot for row in self._rows])
        lanes = self._lanes or (int(slots.max()) // self._size + 1) * self._size
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
        slots = np.array([row.slot for row in some])
        ends = np.array([self._filled(row) for row in some])
        first = slots[0] // lanes * lanes
        slots -= first
        last = np.zeros(min(lanes, len(self._own) - first), np.int64)
        last[slots] = ends
        room = int(ends.max()) + 1 if self._shares else self._own.room
        states = [layer[:, first : first + lanes, :, :room] for layer in self._own.states]
        cursor = (torch.from_numpy(slots).to(self._device), torch.from_numpy(ends).to(self._device))
        state = Decode(states, self._mask(last + 1, room), cursor)
        if self._shares:
            prompts = np.ones(lanes // self._size, np.int64)
            prompts[slots // self._size] = [row.prompt.length for row in some]
            longest = int(prompts.max())
            shared = [layer[:, : len(prompts), :, :longest] for layer in self._shared.states]
            state = replace(state, prompts=(shared, self._mask(prompts, longest)))
        idle = 0 if self._lanes is None else lanes - len(some)
        at = torch.tensor([row.length for row in some])
        ids, at = (F.pad(each, (0, idle))[:, None] for each in (torch.from_numpy(tokens), at))
        return run_layers(self._model, state, ids, at, torch.arange(len(ids)))[: len(some)]

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        self._rows = [self._rows[row] for row in rows]
        # Copying rows costs more than a few idle slots, or a few masked keys, do.
        sparse = (2 * len(rows) if self._lanes is None else roomy(len(rows))) <= self._most
        longest = max(row.length for row in self._rows)
        if sparse or (not self._shares and 2 * longest < self._own.room - TILE):
            self._lay_out()

    def remember(self, row: int, tokens: Tokens) -> None:
        """See `Decoder.remember`."""
        own = self._rows[row]
        if self._lanes is not None:
            return  # In a decode step keys may differ in a bit from those of a prompt.
        if own.length == own.prompt.length or len(tokens) != own.length:
            return
        end = self._filled(own)
        new = slice(end - own.length + own.prompt.length, end)
        states = torch.stack([layer[:, own.slot, :, new] for layer in self._own.states], dim=1)
        whole = Prefix(own.prompt, own.length, states)
        self._prompts.add(tokens, whole)
        if not self._shares:
            self._own.note(own.slot, whole)

    def _filled(self, row: _Row) -> int:
        """Return how many tokens the slot of a row holds."""
        return row.length - (row.prompt.length if self._shares else 0)

    def _seat(self, prefix: Prefix) -> int | None:
        """Return an idle slot beside others of a prompt, or where most of it lies; None if full."""
        if prefix.length >= self._shared.room + self._shares:
            return None
        size, held = self._size, self._shared.held
        taken = {row.slot for row in self._rows}
        used = {slot // size for slot in taken}
        idle = [slot for slot in range(len(self._shared) * size) if slot not in taken]
        nodes = [*prefix.chain()]
        return next(
            chain(
                (slot for slot in idle if held(slot // size) is prefix),
                (slot for slot in idle if slot // size not in used and held(slot // size) in nodes),
                (slot for slot in idle if slot // size not in used),
            ),
            None,
        )

    def _lay_out(self, joining: Sequence[Prefix] = ()) -> None:
        """Make room for a token more of each row and for rows that join, in the first slots."""
        rows: dict[int, list[_Row]] = defaultdict(list)
        for row in self._rows:
            rows[id(row.prompt)].append(row)
        prompts = [*(row.prompt for row in self._rows), *joining]
        counts = Counter(map(id, prompts)).values()
        longest = max(prompt.length for prompt in prompts)
        prompt_room = -(-longest // PROMPT_STEP) * PROMPT_STEP
        room = max(map(self._filled, self._rows), default=0) + 1
        if self._shares:
            room = max(LEAST_ROOM, 1 << (room - 1).bit_length())
        else:
            room = -(-max(room, longest + 1) // TILE) * TILE

        def groups(size: int) -> int:
            return sum(-(-count // size) for count in counts)

        former, size = self._size, 1
        if self._shares:
            most = max(counts)
            sizes = {-(-most // parts) for parts in range(1, most + 1)}
            size = min(sizes, key=lambda size: groups(size) * (prompt_room + size * room))
        places: list[int] = []
        held: list[int] = []
        for members in rows.values():
            for start in range(0, len(members), size):
                part = members[start : start + size]
                held.append(part[0].slot // former)
                # Some slots are idle: what they hold does not matter.
                slots = [row.slot for row in part] + [0] * (size - len(part))
                for place, row in enumerate(part, len(places)):
                    row.slot = place
                places += slots
        count = roomy(groups(size))
        if self._shares:
            self._shared.resize(held, count, prompt_room, prompts[0])
        self._own.resize(places, count * size, room, prompts[0])
        self._most, self._size = len(prompts), size

    def _mask(self, lengths: NDArray[np.int64], width: int) -> torch.Tensor:
        """Return a mask that hides positions from `lengths` [N] on, [N, 1, 1, width]."""
        hidden = torch.arange(width) >= torch.from_numpy(lengths)[:, None]
        mask = torch.zeros(hidden.shape).masked_fill_(hidden, torch.finfo(torch.float32).min)
        return mask[:, None, None].to(self._device)
