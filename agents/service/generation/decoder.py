"""Decode conversations token by token; their keys and values are kept between turns.

A decoder serves one client and one set of weights. Each conversation has a slot. When its reply has
ended the slot is idle, and the conversation's next turn goes on there and reads only what is new.
Another prompt copies what it has in common with any slot. Which request a slot belongs to, how its
tokens are sampled and when it ends is left to the sampler.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
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
from tokengym.agents.service.engine.forward import MIN_SHARED, Tokens, common_length
from tokengym.agents.service.engine.memory import cache_shape, pieces_for

LANES, PIECE = 16, 128
"""Rows, and positions of a prompt, that run at a time where no row may depend on another."""
STEP = 64
"""The room of a slot is a multiple of this number of tokens."""
KEPT_TOKENS = 1 << 16
"""Room of idle slots: as many tokens as the episodes of a training step may have."""
AWAITED = 2
"""For how many decode steps the next turn is awaited, for each token of the reply before it."""

EMPTY = np.empty(0, np.int32)


@dataclass(eq=False)
class _Slot:
    """A place for a conversation.

    Attributes:
        place: in the buffer.
        tokens: what it holds; while a row runs, its prompt.
        length: of all whose keys and values are there.
        pieces: how much of it was read in whole pieces.
        used: how many rows had begun when it was used last.
        over: the decode step at which its next turn is no longer awaited.
    """

    place: int
    tokens: Tokens = field(default_factory=lambda: EMPTY)
    length: int = 0
    pieces: int = 0
    used: int = 0
    over: int = 0

    def hold(self, tokens: Tokens) -> None:
        """Note what it holds."""
        self.tokens, self.length = tokens, len(tokens)


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
        self._slots: list[_Slot] = []
        # The slot of each row, by the number of rows that had begun before.
        self._active: dict[int, _Slot] = {}
        self._begun = 0
        self._steps = 0

    @property
    def tokens(self) -> int:
        """How many tokens there is memory for."""
        return len(self._slots) * self._room

    @property
    def _room(self) -> int:
        return int(self._states[0].shape[3])

    def known(self, prompt: Tokens) -> int:
        """Return how many tokens of a prompt need not be read."""
        return max((self._common(slot, prompt) for slot in self._slots), default=0)

    def displaces(self, prompt: Tokens, end: int, limit: int, joining: int) -> bool:
        """Return whether a prompt needs the place of a conversation that may still go on.

        Args:
            prompt: the tokens.
            end: the most tokens that its conversation may come to have.
            limit: as in `admit`.
            joining: how many other prompts come with it.
        """
        idle = self._without(self._active.values())
        if self._continued(prompt, idle) is not None:
            return False
        holding = len(self._active) + sum(self._steps < slot.over for slot in idle)
        return holding + joining >= max(len(self._slots), limit // max(self._room, end))

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
        while waiting := [row for row in range(len(prompts)) if row not in logits]:
            wave: list[int] = []
            for row in waiting:
                slot, prompt = slots[row], prompts[row]
                if slot.length == 0:
                    others = (common_length(prompts[other], prompt[:-1]) for other in wave)
                    if max(others, default=0) >= self.known(prompt) + MIN_SHARED:
                        continue  # Another one reads its beginning in this wave.
                    self._copy_beginning(slot, prompt)
                wave.append(row)
            found = self._read([(slots[row], prompts[row]) for row in wave])
            logits |= zip(wave, found, strict=True)
        numbers = list(range(self._begun, self._begun + len(slots)))
        self._begun += len(slots)
        self._active |= zip(numbers, slots, strict=True)
        return numbers, torch.stack([logits[row] for row in range(len(prompts))])

    def step(self, rows: Sequence[int], tokens: NDArray[np.int64]) -> torch.Tensor:
        """Append a token [R] to each of some rows; float32 logits [R, vocab] of the next."""
        slots = [self._active[row] for row in rows]
        at, starts = np.array([[slot.place, slot.length] for slot in slots]).T
        lanes = LANES if self._exact else len(at)
        parts = []
        for first in range(0, len(at), lanes):
            some = slice(first, first + lanes)
            state = Decoding(self._states, at[some], starts[some], self._exact)
            count = len(at[some])
            padded = np.zeros((2, lanes, 1), np.int64)
            padded[:, :count, 0] = tokens[some], starts[some]
            ids, positions = torch.from_numpy(padded)
            parts.append(self._run(state, ids, positions, torch.arange(lanes))[:count])
        self._steps += 1
        for slot in slots:
            slot.length += 1
        return torch.cat(parts)

    def release(self, row: int, reply: Tokens) -> None:
        """Let a row go; `reply` are the tokens that were appended to its prompt."""
        slot = self._active.pop(row)
        slot.hold(np.concatenate([slot.tokens, reply])[: slot.length])
        slot.over = self._steps + AWAITED * len(reply)

    def _common(self, slot: _Slot, prompt: Tokens) -> int:
        """Return how many tokens of a prompt, the last one left out, a slot holds."""
        common = common_length(slot.tokens, prompt[:-1])
        # In a decode step keys may differ in a bit from those of a prompt.
        return min(common, slot.pieces) // PIECE * PIECE if self._exact else common

    def _without(self, taken: Iterable[_Slot]) -> list[_Slot]:
        """Return the other slots."""
        those = set(taken)
        return [slot for slot in self._slots if slot not in those]

    def _continued(self, prompt: Tokens, idle: Iterable[_Slot]) -> _Slot | None:
        """Return the slot of the longest conversation that a prompt continues, if any does."""
        shorter = [slot for slot in idle if 0 < slot.length < len(prompt)]
        for slot in sorted(shorter, key=lambda slot: -slot.length):
            if np.array_equal(slot.tokens, prompt[: slot.length]):
                return slot
        return None

    def _seat(self, prompts: Sequence[Tokens], end: int, limit: int) -> list[_Slot]:
        """Return a slot for each prompt: that of the conversation it continues, or an empty one."""
        seats: dict[int, _Slot] = {}
        idle = self._without(self._active.values())
        for row in sorted(range(len(prompts)), key=lambda row: -len(prompts[row])):
            if (slot := self._continued(prompts[row], idle)) is not None:
                seats[row] = slot
                idle.remove(slot)
                if self._exact:
                    slot.hold(slot.tokens[: self._common(slot, prompts[row])])
        kept = [*self._active.values(), *seats.values()]
        self._make_room(kept, len(prompts) - len(seats), end, limit)
        # Slots that hold nothing go first, then those that were used longest ago.
        free = sorted(self._without(kept), key=lambda slot: (slot.length > 0, slot.used))
        for row in range(len(prompts)):
            if row not in seats:
                seats[row] = free.pop(0)
                seats[row].hold(EMPTY)
                seats[row].pieces = 0
            seats[row].used = self._begun
        return [seats[row] for row in range(len(prompts))]

    def _make_room(self, kept: Sequence[_Slot], lacking: int, end: int, limit: int) -> None:
        """Have `lacking` slots besides those kept, and others as far as there is memory."""
        room, count = max(self._room, -(-end // STEP) * STEP), len(kept) + lacking
        have, others = len(self._slots), self._without(kept)
        if room > self._room:
            room = max(room, min(3 * self._room // 2 // STEP * STEP, limit // count))
        # Idle conversations beside those in use, as many as may be kept.
        most = max(count, min(limit, count * room + KEPT_TOKENS) // room)
        empty = sum(slot.length == 0 for slot in others)
        count = max(count, min(most, have + max(0, lacking - empty)))
        if room == self._room and have >= count:
            return
        others.sort(key=lambda slot: -slot.used)
        left = {*kept, *others[: count - lacking - len(kept)]}
        slots = [slot for slot in self._slots if slot in left]
        if 0 < have < count:  # Those to come need slots too: growing copies all.
            count = min(most, count + count // 2)
        longest = max((slot.length for slot in slots), default=0)
        places = [slot.place for slot in slots]
        whole = places == list(range(len(places)))
        chosen = slice(0, len(places)) if whole else torch.tensor(places, dtype=torch.long)
        for layer, former in enumerate(self._states):
            # Entries past the end are masked; they must be finite because 0 · inf is NaN.
            states = _zeros(former, (2, count, former.shape[2], room, former.shape[4]))
            states[:, : len(slots), :, :longest] = former[:, chosen, :, :longest]
            self._states[layer] = states
        self._slots = slots + [_Slot(0) for _ in range(count - len(slots))]
        for place, slot in enumerate(self._slots):
            slot.place = place

    def _copy_beginning(self, slot: _Slot, prompt: Tokens) -> None:
        """Copy to an empty slot what another one has in common with its prompt."""
        source = max(self._slots, key=lambda other: self._common(other, prompt))
        if (common := self._common(source, prompt)) >= MIN_SHARED:
            for states in self._states:
                states[:, slot.place, :, :common] = states[:, source.place, :, :common]
            slot.hold(prompt[:common])
            slot.pieces = min(common, source.pieces)

    def _read(self, items: Sequence[tuple[_Slot, Tokens]]) -> list[torch.Tensor]:
        """Read what slots do not hold of their prompts; logits [vocab] after each."""
        if self._exact:
            return [self._read_in_pieces(*item) for item in items]
        logits: list[torch.Tensor] = []
        part: list[tuple[_Slot, Tokens]] = []
        filled = 0
        for slot, prompt in items:
            part.append((slot, prompt))
            filled += len(prompt) - slot.length
            if filled >= pieces_for(self._device).positions:
                logits += self._pass(part)
                part, filled = [], 0
        return logits + self._pass(part) if part else logits

    def _read_in_pieces(self, slot: _Slot, prompt: Tokens) -> torch.Tensor:
        assert slot.length % PIECE == 0, "what is kept are whole pieces"
        logits: list[torch.Tensor] = []
        for end in (*range(slot.length + PIECE, len(prompt), PIECE), len(prompt)):
            logits = self._pass([(slot, prompt[:end])])
            slot.pieces = end // PIECE * PIECE
        return logits[0]

    def _pass(self, items: Sequence[tuple[_Slot, Tokens]]) -> list[torch.Tensor]:
        starts = [slot.length for slot, _ in items]
        new = [prompt[start:] for start, (_, prompt) in zip(starts, items, strict=True)]
        counts = [len(tokens) for tokens in new]
        positions = [np.arange(s, s + n) for s, n in zip(starts, counts, strict=True)]
        ids, at = np.concatenate(new).astype(np.int64), np.concatenate(positions)
        state = KeptPass(self._states, [slot.place for slot, _ in items], starts, counts)
        row, where = torch.from_numpy(ids)[None], torch.from_numpy(at)[None]
        logits = self._run(state, row, where, torch.from_numpy(np.cumsum(counts) - 1))
        for slot, prompt in items:
            slot.hold(prompt)
        return list(logits)

    def _run(
        self, state: AttentionState, ids: torch.Tensor, at: torch.Tensor, places: torch.Tensor
    ) -> torch.Tensor:
        """Run tokens [R, T] at positions [R, T]; logits at `places` [M] of the R * T."""
        with torch.inference_mode(), attending(self._model, state):
            hidden = hidden_states(self._model, ids.to(self._device), at.to(self._device))
            return logits_of(self._model, hidden.flatten(0, 1)[places.to(self._device)])


def _zeros(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Return zeros; on a processor they take no memory until they are written."""
    if like.device.type != "cpu":
        return like.new_zeros(shape)
    size = like.itemsize * int(np.prod(shape))
    return torch.from_numpy(np.zeros(size, np.uint8)).view(like.dtype).view(*shape)
