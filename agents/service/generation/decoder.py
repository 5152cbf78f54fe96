"""Decode conversations token by token; their keys and values are kept between turns.

A decoder serves one client and one set of weights. Each conversation has a slot. When its reply has
ended the slot is idle, and the conversation's next turn goes on there and reads only what is new.
Another prompt copies what it has in common with any slot. Which request a slot belongs to, how its
tokens are sampled and when it ends is left to the sampler.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tokengym.agents.service.engine.attention import (
    AttentionState,
    Decoding,
    KeptPass,
    attending,
    hidden_states,
)
from tokengym.agents.service.engine.base_model import logits_of
from tokengym.agents.service.engine.groups import MIN_SHARED, Tokens, common_length
from tokengym.agents.service.engine.memory import cache_shape, pieces_for

LANES, PIECE = 16, 128
"""Rows, and positions of a prompt, that run at a time where no row may depend on another."""
STEP = 64
"""The room of a slot is a multiple of this number of tokens."""
KEPT_TOKENS = 1 << 16
"""Room of idle slots: as many tokens as the episodes of a training step may have."""


class KeptDecoder:
    """Conversations under one set of weights, in one buffer, which grows by blocks.

    Args:
        model: runs with these weights.
        exact: whether no row may depend on another by a single bit, where libraries of matrix
            products choose the order of sums by the shape of the operands. Then rows run in lanes,
            some of them idle, and prompts alone, in pieces that begin at multiples of their size.
    """

    def __init__(self, model: Any, *, exact: bool = False) -> None:
        self._model, self._exact = model, exact
        weight = next(model.parameters())
        self._device = weight.device
        layers, *shape = cache_shape(model)
        self._states = [weight.new_empty(2, 0, shape[0], 0, shape[1]) for _ in range(layers)]
        # Tokens of each slot, its last use, and how much of it was read in whole pieces.
        self._held: list[Tokens] = []
        self._used: list[int] = []
        self._pieces: list[int] = []
        self._lengths = np.empty(0, np.int64)
        # The slot of each row.
        self._active: dict[int, int] = {}
        self._clock = self._begun = 0

    @property
    def tokens(self) -> int:
        """How many tokens there is memory for."""
        return len(self._held) * self._room

    @property
    def _room(self) -> int:
        return int(self._states[0].shape[3])

    def known(self, prompt: Tokens) -> int:
        """Return how many tokens of a prompt need not be read."""
        return max((self._common(slot, prompt) for slot in range(len(self._held))), default=0)

    def displaces(self, prompt: Tokens, end: int, limit: int, joining: int) -> bool:
        """Return whether a prompt needs the place of a conversation that it does not continue.

        Args:
            prompt: the tokens.
            end: the most tokens that its conversation may come to have.
            limit: as in `admit`.
            joining: how many other prompts come with it.
        """
        if self._continued(prompt, self._idle) is not None:
            return False
        holding = sum(len(held) > 0 for held in self._held)
        return holding + joining >= max(len(self._held), limit // max(self._room, end))

    def admit(
        self, prompts: Sequence[Tokens], ends: Sequence[int], limit: int
    ) -> tuple[list[int], torch.Tensor]:
        """Begin a row for each prompt; returns their numbers, and float32 logits [N, vocab].

        The common beginning of prompts is read once.

        Args:
            prompts: the tokens.
            ends: the most tokens that each conversation may come to have.
            limit: tokens that there may be memory for, if those in use need no more.
        """
        slots = self._seat(prompts, max(ends), limit)
        logits: dict[int, torch.Tensor] = {}
        waiting = list(range(len(prompts)))
        while waiting:
            wave: list[int] = []
            for row in waiting:
                slot, prompt = slots[row], prompts[row]
                if len(self._held[slot]) == 0:
                    others = (common_length(prompts[other], prompt[:-1]) for other in wave)
                    if max(others, default=0) >= self.known(prompt) + MIN_SHARED:
                        continue  # Another one reads its beginning in this wave.
                    self._copy_beginning(slot, prompt)
                wave.append(row)
            found = self._read([(slots[row], prompts[row]) for row in wave])
            logits |= zip(wave, found, strict=True)
            waiting = [row for row in waiting if row not in logits]
        numbers = list(range(self._begun, self._begun + len(slots)))
        self._begun += len(slots)
        self._active |= zip(numbers, slots, strict=True)
        return numbers, torch.stack([logits[row] for row in range(len(prompts))])

    def step(self, rows: Sequence[int], tokens: NDArray[np.int64]) -> torch.Tensor:
        """Append a token [R] to each of some rows; float32 logits [R, vocab] of the next."""
        at = np.array([self._active[row] for row in rows])
        ids, starts = torch.from_numpy(tokens), self._lengths[at]
        lanes = LANES if self._exact else len(at)
        parts = []
        for first in range(0, len(at), lanes):
            some = slice(first, first + lanes)
            state = Decoding(self._states, at[some], starts[some], self._exact)
            count = len(at[some])
            padded = torch.zeros(2, lanes, dtype=torch.long)
            padded[0, :count], padded[1, :count] = ids[some], torch.from_numpy(starts[some])
            row_ids, positions = padded[..., None]
            parts.append(self._run(state, row_ids, positions, torch.arange(lanes))[:count])
        self._lengths[at] += 1
        return torch.cat(parts)

    def release(self, row: int, reply: Tokens) -> None:
        """Let a row go; `reply` are the tokens that were appended to its prompt."""
        slot = self._active.pop(row)
        written = int(self._lengths[slot]) - len(self._held[slot])
        self._held[slot] = np.concatenate([self._held[slot], reply[:written]])
        self._lengths[slot] = len(self._held[slot])

    def _hold(self, slot: int, tokens: Tokens) -> None:
        self._held[slot], self._lengths[slot] = tokens, len(tokens)

    def _common(self, slot: int, prompt: Tokens) -> int:
        """Return how many tokens of a prompt, the last one left out, a slot holds."""
        common = common_length(self._held[slot], prompt[:-1])
        # In a decode step keys may differ in a bit from those of a prompt.
        return min(common, self._pieces[slot]) // PIECE * PIECE if self._exact else common

    @property
    def _idle(self) -> set[int]:
        return set(range(len(self._held))) - set(self._active.values())

    def _continued(self, prompt: Tokens, idle: set[int]) -> int | None:
        """Return the slot of the longest conversation that a prompt continues, if any does."""
        longest: int | None = None
        for slot in idle:
            held = self._held[slot]
            if (longest is None or len(held) > len(self._held[longest])) and (
                0 < len(held) < len(prompt) and np.array_equal(held, prompt[: len(held)])
            ):
                longest = slot
        return longest

    def _seat(self, prompts: Sequence[Tokens], end: int, limit: int) -> list[int]:
        """Return a slot for each prompt: that of the conversation it continues, or an empty one."""
        self._clock += 1
        seats: dict[int, int] = {}
        idle = self._idle
        for row in sorted(range(len(prompts)), key=lambda row: -len(prompts[row])):
            if (slot := self._continued(prompts[row], idle)) is not None:
                seats[row] = slot
                idle.remove(slot)
                if self._exact:
                    self._hold(slot, self._held[slot][: self._common(slot, prompts[row])])
        kept = [*self._active.values(), *seats.values()]
        lacking = len(prompts) - len(seats)
        new_place = self._make_room(kept, lacking, end, limit)
        seats = {row: new_place[slot] for row, slot in seats.items()}
        self._active = {row: new_place[slot] for row, slot in self._active.items()}
        taken = {*self._active.values(), *seats.values()}
        free = [slot for slot in range(len(self._held)) if slot not in taken]
        # Slots that hold nothing go first, then those that were used longest ago.
        free.sort(key=lambda slot: (len(self._held[slot]) > 0, self._used[slot]))
        for row in range(len(prompts)):
            if row not in seats:
                seats[row] = free.pop(0)
                self._hold(seats[row], np.empty(0, np.int32))
                self._pieces[seats[row]] = 0
            self._used[seats[row]] = self._clock
        return [seats[row] for row in range(len(prompts))]

    def _make_room(self, kept: list[int], lacking: int, end: int, limit: int) -> dict[int, int]:
        """Have `lacking` slots besides those kept, and others as far as there is memory.

        Returns:
            the new numbers of the slots that are left.
        """
        room, count = max(self._room, -(-end // STEP) * STEP), len(kept) + lacking
        have = len(self._held)
        if room > self._room:
            room = max(room, min(3 * self._room // 2 // STEP * STEP, limit // count))
        # Idle conversations beside those in use, as many as may be kept.
        most = max(count, min(limit, count * room + KEPT_TOKENS) // room)
        empty = sum(len(self._held[slot]) == 0 for slot in set(range(have)) - set(kept))
        count = max(count, min(most, have + max(0, lacking - empty)))
        if room == self._room and have >= count:
            return {slot: slot for slot in range(have)}
        spare = sorted(set(range(have)) - set(kept), key=lambda slot: -self._used[slot])
        order = sorted([*kept, *spare[: count - lacking - len(kept)]])
        # Those to come need slots too: growing copies all.
        count = min(most, count + count // 2) if have else count
        longest = int(self._lengths[order].max(initial=0))
        whole = order == list(range(len(order)))
        chosen = slice(0, len(order)) if whole else torch.tensor(order, dtype=torch.long)
        for layer, former in enumerate(self._states):
            states = former.new_empty(2, count, former.shape[2], room, former.shape[4])
            states[:, : len(order), :, :longest] = former[:, chosen, :, :longest]
            # Entries past the end are masked; they must be finite because 0 · inf is NaN.
            states[:, : len(order), :, longest:] = 0
            states[:, len(order) :] = 0
            self._states[layer] = states
        more = count - len(order)
        self._held = [self._held[slot] for slot in order] + [np.empty(0, np.int32)] * more
        self._used = [self._used[slot] for slot in order] + [0] * more
        self._pieces = [self._pieces[slot] for slot in order] + [0] * more
        self._lengths = np.append(self._lengths[order], np.zeros(more, np.int64))
        return {slot: place for place, slot in enumerate(order)}

    def _copy_beginning(self, slot: int, prompt: Tokens) -> None:
        """Copy to an empty slot what another one has in common with its prompt."""
        common, source = max((self._common(s, prompt), s) for s in range(len(self._held)))
        if common >= MIN_SHARED:
            self._copy(source, slot, common)
            self._hold(slot, prompt[:common])
            self._pieces[slot] = min(common, self._pieces[source])

    def _copy(self, source: int, slot: int, length: int) -> None:
        for states in self._states:
            states[:, slot, :, :length] = states[:, source, :, :length]

    def _read(self, items: Sequence[tuple[int, Tokens]]) -> list[torch.Tensor]:
        """Read what slots do not hold of their prompts; logits [vocab] after each."""
        if self._exact:
            return [self._read_in_pieces(*item) for item in items]
        logits: list[torch.Tensor] = []
        most = pieces_for(self._device).positions
        start = 0
        while start < len(items):
            stop, filled = start, 0
            while stop < len(items) and (filled == 0 or filled < most):
                slot, prompt = items[stop]
                filled += len(prompt) - len(self._held[slot])
                stop += 1
            logits += self._pass(items[start:stop])
            start = stop
        return logits

    def _read_in_pieces(self, slot: int, prompt: Tokens) -> torch.Tensor:
        start = len(self._held[slot])
        assert start % PIECE == 0, "what is kept are whole pieces"
        logits: list[torch.Tensor] = []
        for end in (*range(start + PIECE, len(prompt), PIECE), len(prompt)):
            logits = self._pass([(slot, prompt[:end])])
            self._pieces[slot] = end // PIECE * PIECE
        return logits[0]

    def _pass(self, items: Sequence[tuple[int, Tokens]]) -> list[torch.Tensor]:
        slots = [slot for slot, _ in items]
        starts = [len(self._held[slot]) for slot in slots]
        new = [prompt[start:] for start, (_, prompt) in zip(starts, items, strict=True)]
        counts = [len(tokens) for tokens in new]
        positions = [np.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]
        ids, at = np.concatenate(new).astype(np.int64), np.concatenate(positions)
        state = KeptPass(self._states, slots, starts, counts)
        row, where = torch.from_numpy(ids)[None], torch.from_numpy(at)[None]
        logits = self._run(state, row, where, torch.from_numpy(np.cumsum(counts) - 1))
        for slot, prompt in items:
            self._hold(slot, prompt)
        return list(logits)

    def _run(
        self, state: AttentionState, ids: torch.Tensor, at: torch.Tensor, places: torch.Tensor
    ) -> torch.Tensor:
        """Run tokens [R, T] at positions [R, T]; logits at `places` [M] of the R * T."""
        with torch.inference_mode(), attending(self._model, state):
            hidden = hidden_states(self._model, ids.to(self._device), at.to(self._device))
            return logits_of(self._model, hidden.flatten(0, 1)[places.to(self._device)])
