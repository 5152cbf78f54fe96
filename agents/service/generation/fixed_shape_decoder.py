"""A decoder whose rows are bitwise equal, whatever else is sampled at the time.

Libraries of matrix products choose their order of summation by the shape of the operands. Here all
shapes are constants: layers run on `LANES` rows at a time, some of them idle; attention sums over
tiles of `TILE` keys, one after the other, and what lies past a row's end adds zero. Prompts run
alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F

from tokengym.agents.service.generation.prompts import Prompts, next_logits, run_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tokengym.agents.service.engine.packing import Tokens
    from tokengym.agents.service.generation.prefix_cache import PrefixCache

LANES = 16
TILE = 128


@dataclass(frozen=True)
class _Attention:
    """One new token for each of R rows; the lanes after them are idle.

    Attributes:
        states: keys and values, float32 [2, layers, R, kv_heads, tiles, TILE, head_dim]; written
            by the pass.
        mask: float [R, 1, tiles, 1, TILE] added to the scores.
        cursor: int64 [R], where the new token of each row goes.
    """

    states: torch.Tensor
    mask: torch.Tensor
    cursor: torch.Tensor

    def attend(
        self, layer: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
    ) -> torch.Tensor:
        """One layer: [LANES, heads, 1, head_dim] in and out."""
        rows, (_, heads, _, width) = len(self.cursor), query.shape
        keys, values = self.states[0, layer], self.states[1, layer]
        row, tile, at = torch.arange(rows), self.cursor // TILE, self.cursor % TILE
        keys[row, :, tile, at] = key[:rows, :, 0].float()
        values[row, :, tile, at] = value[:rows, :, 0].float()
        kv_heads, tiles = keys.shape[1:3]
        # Consecutive query heads share a key head, as in transformers' repeat_kv.
        queries = (query[:rows].float() * scale).reshape(rows, kv_heads, 1, -1, width)
        # A product for each tile of each row, all of one shape.
        scores = queries @ keys.transpose(-1, -2) + self.mask
        joined = scores.transpose(2, 3).flatten(3)
        weights = torch.softmax(joined, dim=-1).unflatten(-1, (tiles, TILE)).transpose(2, 3)
        parts = weights @ values
        mixed = parts[:, :, 0]
        for part in range(1, tiles):
            mixed = mixed + parts[:, :, part]
        return F.pad(mixed.reshape(rows, heads, 1, width), (0, 0, 0, 0, 0, 0, 0, LANES - rows))


class _Lanes:
    """Up to `LANES` rows that run together, each with keys and values of its own.

    Attributes:
        length: int64 [R], tokens of each row so far.
    """

    def __init__(self, states: torch.Tensor) -> None:
        _, layers, kv_heads, _, width = states.shape
        self.length: NDArray[np.int64] = np.empty(0, np.int64)
        self._states = states.new_zeros(2, layers, 0, kv_heads, 0, TILE, width)

    def add(self, states: torch.Tensor) -> None:
        """Add a row with keys and values [2, layers, kv_heads, length, head_dim]."""
        length = states.shape[3]
        self.length = np.append(self.length, length)
        self._fit()
        tiles = self._states.shape[4]
        whole = F.pad(states, (0, 0, 0, tiles * TILE - length)).unflatten(3, (tiles, TILE))
        self._states = torch.cat([self._states, whole[:, :, None]], dim=2)

    def of(self, row: int) -> torch.Tensor:
        """Return a row's keys and values, as `add` takes them."""
        return self._states[:, :, row].flatten(3, 4)[:, :, :, : int(self.length[row])]

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Keep these rows, at least one, in this order."""
        if np.array_equal(rows, np.arange(len(self.length))):
            return
        self.length = self.length[rows]
        index = torch.from_numpy(rows).to(self._states.device)
        self._states = self._states.index_select(2, index)
        self._fit()

    def step(self, model: Any, tokens: NDArray[np.int64]) -> torch.Tensor:
        """Append a token [R] to every row; logits [R, vocab]."""
        self._fit()
        rows, tiles, device = len(tokens), self._states.shape[4], self._states.device
        ids, at = np.zeros((2, LANES, 1), np.int64)
        ids[:rows, 0], at[:rows, 0] = tokens, self.length
        cursor = torch.from_numpy(self.length).to(device)
        hidden = torch.arange(tiles * TILE, device=device) > cursor[:, None]
        mask = torch.zeros(hidden.shape, device=device)
        mask.masked_fill_(hidden, torch.finfo(mask.dtype).min)
        state = _Attention(self._states, mask.reshape(rows, 1, tiles, 1, TILE), cursor)
        every = torch.arange(LANES)
        logits = run_layers(model, state, torch.from_numpy(ids), torch.from_numpy(at), every)
        self.length = self.length + 1
        return logits[:rows]

    def _fit(self) -> None:
        """Have the tiles that the longest row and its next token need: products read all."""
        more = int(self.length.max()) // TILE + 1 - int(self._states.shape[4])
        if more:
            self._states = F.pad(self._states, (0, 0, 0, 0, 0, more))


class LaneDecoder:
    """A `Decoder` of rows that do not depend on each other by a single bit.

    Args:
        model: of an architecture that can share prompts.
        store: cache of computed prompts, which must find whole prompts only.
        weights: key of the model's weights.
    """

    def __init__(self, model: Any, store: PrefixCache, weights: str) -> None:
        self._model = model
        self._prompts = Prompts(model, store, weights)
        self._parts: list[_Lanes] = []
        # Of each row, the part it is in and its place there.
        self._at: list[tuple[_Lanes, int]] = []

    def admit(self, prompts: Sequence[Tokens]) -> torch.Tensor:
        """See `Decoder.admit`; a prompt runs in a batch of its own."""
        # Found first: a long prompt must not drop another one from the cache before it is copied.
        prefixes = [self._prompts.prefixes([prompt])[0] for prompt in prompts]
        self._at += [self._add(prefix.joined()) for prefix in prefixes]
        return torch.stack([next_logits(prefix) for prefix in prefixes])

    def step(self, tokens: NDArray[np.int64]) -> torch.Tensor:
        """See `Decoder.step`."""
        order = [self._rows_of(part) for part in self._parts]
        parts = zip(self._parts, order, strict=True)
        logits = torch.cat([part.step(self._model, tokens[rows]) for part, rows in parts])
        return logits[torch.from_numpy(np.argsort(np.concatenate(order)))]

    def keep(self, rows: Sequence[int]) -> None:
        """See `Decoder.keep`."""
        self._at = [self._at[row] for row in rows]
        for part in self._parts:
            self._compact(part)
        self._parts = [part for part in self._parts if self._rows_of(part)]
        while len(self._parts) > -(-len(self._at) // LANES):
            last = self._parts.pop()
            for row in self._rows_of(last):
                self._at[row] = self._add(last.of(self._at[row][1]))

    def remember(self, row: int, tokens: Tokens) -> None:
        """Do nothing: keys computed in a decode step may differ in a bit from those of a prompt."""

    def _rows_of(self, part: _Lanes) -> list[int]:
        """Return a part's rows in the order of their places."""
        rows = [row for row, (lanes, _) in enumerate(self._at) if lanes is part]
        return sorted(rows, key=lambda row: self._at[row][1])

    def _compact(self, part: _Lanes) -> None:
        rows = self._rows_of(part)
        if rows:
            part.keep(np.array([self._at[row][1] for row in rows]))
            for place, row in enumerate(rows):
                self._at[row] = (part, place)

    def _add(self, states: torch.Tensor) -> tuple[_Lanes, int]:
        """Put a row where there is room; returns where."""
        part = next((part for part in self._parts if len(part.length) < LANES), None)
        if part is None:
            part = _Lanes(states)
            self._parts.append(part)
        part.add(states)
        return part, len(part.length) - 1
